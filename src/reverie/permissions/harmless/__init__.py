"""The second list: commands that the main agent may run without a question in a trusted folder.

`command` decides, `guarded` runs. Background agents never use it: their list is `permissions/shell`.
"""
