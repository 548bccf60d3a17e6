"""The pages of the web interface."""
