"""One module per price source; each is found by itself."""
