"""What the pages about memory, the inbox and dreams read: memory directories, lists, one memory, its versions."""
