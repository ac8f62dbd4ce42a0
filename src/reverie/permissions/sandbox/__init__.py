"""Runs a shell command with only the rights that it needs: the kernel refuses the rest.

Landlock and seccomp work for any user, namespaces where the kernel allows them; Linux on x86-64 and ARM64 only.
Elsewhere `probe` gives the reason, and the caller asks a person. Nothing here decides whether a command is harmless.
"""
