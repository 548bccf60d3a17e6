"""How prices are kept: columns, engines, intervals, queries, and what is bundled."""
