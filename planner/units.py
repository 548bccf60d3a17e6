"""Units and conversions used all over: bytes, hours, money; and what a formula takes and gives."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# One formula serves one machine and many at once.
Numbers: TypeAlias = float | NDArray[np.float64]

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
