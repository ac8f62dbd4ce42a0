"""What can be said of a text without knowing whose it is: its words, its statements, its days, and whether two agree.

One answer per question, shared by memory, the layers and the embedded mind. Nothing here knows what a memory is, reads
a file or asks for the time.
"""
