"""Units and conversions used all over: bytes, hours, money."""

GIB = 2**30
GB = 10**9
MIB = 2**20

# 8,760 h / 12: reserved and always-on use.
HOURS_PER_MONTH = 730.0
HOURS_PER_YEAR = 8760.0
# 365 / 12, rounded down: the month in which daily use is counted.
DAYS_PER_MONTH = 30.4
MICRO_USD = 1_000_000
TOKENS_PER_PRICE = 1_000_000
