"""From price pages to verified rows: fetch, parse, normalise, verify, store."""
