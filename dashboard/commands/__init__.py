"""The commands, one module a group; each adds its parsers with `register(commands)`."""

# In the order of `breakeven -h`.
MODULES = (
    "catalogues",
    "size",
    "talk",
    "finetune",
    "evidence",
    "calibrate",
    "plan",
    "launch",
    "prices",
    "importing",
    "schedule",
    "database",
    "web",
)
