"""`python -m dashboard` does what `breakeven` does."""

import sys

from dashboard.cli import main

sys.exit(main())
