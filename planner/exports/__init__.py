"""A plan as a file: documents for people, FOCUS columns, workbooks."""
