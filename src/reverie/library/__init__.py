"""The layers under the loop of another program."""
