"""Memory as files: the directory of topic files, its index, and the prompt that explains it. `gate/` judges writes,
`secrets/` finds what must never be stored, `recall/` finds what fits, `upkeep/` repairs, imports and purges, `sharing/`
serves teams and agents."""
