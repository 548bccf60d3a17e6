"""What the tables and charts of the page show, as rows of plain values."""
