"""Published and own measurements beside the formulas: replayed, compared, and used to correct estimates."""
