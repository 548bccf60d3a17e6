"""Rates of exchange: those of the European Central Bank, and which of them counts."""
