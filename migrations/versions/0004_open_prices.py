"""All that a plan compares of open prices in their index."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

OPEN = sa.text("closed_at IS NULL")
BEFORE = ["series_id", "verdict", "usd_per_hour"]


def upgrade() -> None:
    replace([*BEFORE, "last_seen_at", "available", "usd_per_month_cap", "origin", "id"])


def downgrade() -> None:
    replace(BEFORE)


def replace(columns: list[str]) -> None:
    op.drop_index("ix_price_open", table_name="price")
    op.create_index("ix_price_open", "price", columns, sqlite_where=OPEN, postgresql_where=OPEN)
