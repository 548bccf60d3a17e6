"""From a page to names and amounts: strict reading, a process of its own, GPU and region names."""
