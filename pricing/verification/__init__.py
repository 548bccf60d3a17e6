"""The named rules, what each looks at, its thresholds; the market beside it; the word of a person."""
