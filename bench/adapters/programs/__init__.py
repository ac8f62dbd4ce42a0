"""The scripted agent as a program of each SDK. Each program runs in a process of its own, and can be killed."""
