"""What is not known: inputs with ranges, one at a time and drawn together, for owning, renting and APIs."""
