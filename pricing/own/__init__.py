"""The user's own contract prices and quotes."""
