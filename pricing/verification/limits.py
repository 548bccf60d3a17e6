"""The thresholds of verification, each with what it was taken from."""

from datetime import timedelta

# Limits of any GPU's hour, and of a slice scaled up: the cheapest known price is 0.01 (a GTX 1050 Ti), the
# dearest of a card 23.33 (an H100 of Azure's in South Africa). Source: docs/verification.md, "hard-limits".
# [USD/h]
HARD_LOW, HARD_HIGH = 0.01, 40.0
# Racks list at up to 54.08: Azure GB200, Brazil South, 2026-06-18. Source: prices.azure.com,
# ND128isr_NDR_GB200_v6.
HARD_HIGH_OF = {"GB200": 60.0, "GB300": 70.0}
# Against the middle of the own class: 1.3 % of the bundled prices lie outside. Source: docs/verification.md,
# "band".
BAND_LOW, BAND_HIGH = 0.3, 3.0
# Where the class has too few prices and all classes are taken together: of 25 bundled prices so compared two
# lie outside. Source: docs/verification.md, "any-class".
WIDE_BAND_LOW, WIDE_BAND_HIGH = 0.25, 4.0
# Of a GPU that has no middle, against what others cost for their memory bandwidth: of 91 collected prices
# of such GPUs two lie outside. Source: docs/verification.md, "likeness".
LIKE_LOW, LIKE_HIGH = 1 / 7, 4.0
# A spot price where only list prices of the GPU are known, against their middle: of the bundled ones none
# lies outside. Source: docs/verification.md, "likeness".
SPOT_LOW, SPOT_HIGH = 1 / 7, 1.5
# So far from the middle a price is no price but a mistake. Source: own choice.
ABSURD_LOW, ABSURD_HIGH = 0.1, 10.0
# Largest move that needs no confirmation, as a factor: 0.4 % of 16,781 successive pairs of list and spot
# prices move further, 5.7 % of 13,372 pairs of asks. Source: docs/verification.md, "jump".
JUMP_LIST, JUMP_ASK = 1.5, 1.9
# The largest true move of a list price in these pairs is 1.86, the smallest confusion of units is 2; the
# seven list prices that moved further were errors of their source. Source: docs/verification.md, "leap".
LEAP = 1.9
# Nor did one move so far in several steps within 120 days. Source: docs/verification.md, "leap"; the time is
# our own choice.
LEAP_WITHIN = timedelta(days=60)
# Asks of one GPU and tier lie within this of their median: 98 % of 12,904. Source: docs/verification.md,
# "book".
BOOK_LOW, BOOK_HIGH = 0.38, 2.38
# With fewer asks there is no middle to speak of. Source: own choice.
BOOK_ASKS = 5
# In the middle the asks of a book move by less from one run to another: 50 % of the daily moves of asks are
# smaller than 13 %, and up as often as down. Source: docs/verification.md, "Lists and asks".
BOOK_MOVE = 1.4
# Two sizes that cost this much alike per GPU moved together. Source: own choice.
SIZES_SAME = 1.25
# True community prices lie above 0.45 of the secure one, placeholders at 0.21. Source: docs/verification.md,
# "community".
COMMUNITY_LOW = 0.3
# How closely a ratio must match a confusion of units to be called one. Source: own choice.
UNIT_SHARE = 0.03
# Hours of a day, of a month as providers count it, of a year. Source: Vultr's and DigitalOcean's monthly
# prices are 672 to 744 hourly ones.
UNIT_FACTORS = {
    24.0: "a day",
    672.0: "a month",
    730.0: "a month",
    744.0: "a month",
    8760.0: "a year",
}
# Exchange rates move by about this much from one day to the next. Source: the European Central Bank's daily
# reference rates.
FX_SHARE = 0.002
# An own price this much older than a dearer one of the same GPUs may be a page served again: DigitalOcean, 8x
# H100 at 23.92 of 2025 beside 35.28 of 2026. Source: docs/verification.md, "outdated".
OUTDATED_AFTER, OUTDATED_SHARE = timedelta(days=30), 0.8
# A witness that is older than the source confirms it within this, if it is not nearer to the price before; it
# never overrules. Source: own choice.
WITNESS_SHARE = 0.15
# Of an offer without a price of its own before it, which tells an exchange rate from a price. Source: own
# choice; a euro was 1.12 dollars.
WITNESS_SHARE_NEW = 0.05
# So often it must have been seen to say so against an own price: one answer may be of an old edition. Source:
# own choice; SkyPilot's list held AWS's price of 8x H100 of before a cut of 44 % long after it.
WITNESS_RUNS = 2
# One that was seen so long before or after says nothing of a price. Source: own choice.
WITNESS_AGE = timedelta(days=90)
# So often and so long a price must have been seen where one repetition proves nothing. Source: own choice;
# see docs/verification.md, "Confirmation".
LONG_RUNS, LONG_SPAN = 3, timedelta(days=3)
# The same of what may be an old page. Source: own choice.
WEEK_SPAN = timedelta(days=7)
# Between two runs an ask has moved: half of the daily moves are smaller. Source: docs/verification.md,
# "jump".
SEEN_SHARE_ASK = 0.2
# So near to a bundled price is that price, of an ask or on the spot market: an exchange rate is further.
# Source: own choice; a euro was 1.12 dollars.
COLLECTED_SHARE_ASK = 0.1
# Earlier prices within this tell which offers took over the price of another. Source: own choice.
LATELY = timedelta(days=14)
# A list of which so much moves at once is held for a night: 6 of 1,286 runs did. Source:
# docs/verification.md, "mass-move".
MASS_ROWS, MASS_SHARE = 5, 0.5
# All of a shorter list, of so many rows or more, by one factor. Source: own choice.
SHORT_ROWS = 2
# The same where the factors differ: in none of 625 runs of two to four known prices did all move. Source:
# docs/verification.md, "mass-move"; that two may is our own choice.
FEW_ROWS = 3
# What a page rounds its prices to. [USD/h]
HALF_A_CENT = 0.005
# No machine's hour costs so much; beyond it decimals are not divided any more. [USD/h]
NO_PRICE_USD = 10**9
# The factors of prices that moved alike, the largest against the smallest: discounts of 15 to 32 % for a term
# lie within it. Source: own choice; docs/verification.md, "one-factor".
ALIKE = 1.25
# Of all that changed, so much took an earlier price again: a page of then. Source: docs/verification.md,
# "stale-source".
RETURNED_SHARE = 0.5
# A price that was last seen within the first, and stood for the second, was right: what was read between was
# an error. Source: own choice: two nights and the one after them, and a week.
MEND_WITHIN, MEND_STOOD = timedelta(days=3.5), timedelta(days=7)
# A page that is byte for byte one that was replaced so long ago was served from a store. Source: own choice.
OLD_PAGE_AFTER = timedelta(days=7)
# Of the known prices that an answer changes, so many and such a share are impossible: no repetition confirms
# the rest. Source: docs/verification.md, "suspect-answer".
DOUBT_ROWS, DOUBT_SHARE = 2, 0.5
