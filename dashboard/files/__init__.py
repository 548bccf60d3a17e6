"""Files of models and measurements: on disk, on a hub, and what was kept of a user's own."""
