"""Database revisions; plain SQLAlchemy types only."""
