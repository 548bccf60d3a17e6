"""The inputs of the page: each with name, unit, default and hint, by group; what a file adds."""
