"""The commands, one module a group; each adds its parsers with `register(commands)`."""

# In the order of `breakeven -h`.
MODULES = ("catalogues", "size", "finetune", "launch", "prices", "database", "web")
