"""A model served on a machine: its shape, the work of a step, what engines reach, many sized at once."""
