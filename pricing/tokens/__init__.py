"""Prices of API tokens: LiteLLM's list, judged before it counts, and kept by day."""
