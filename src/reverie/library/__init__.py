"""The layers for programs with their own loop: `Engine` for one conversation, `Memory` for one memory directory.

The public names are in `reverie` itself, which loads each on first use. Nothing here knows an SDK.
"""
