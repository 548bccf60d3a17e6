"""The commands of `breakeven`, one module a group."""
