"""x."""

from dashboard import parts

f = parts.frame()
f.head.subheader(repr(f.scenario.to_query()))
