"""Reference rates of exchange by day, as fetched."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UTC_TIME = sa.DateTime().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "exchange_rate",
        sa.Column("as_of", sa.String(), nullable=False),
        sa.Column("currency", sa.String(), nullable=False),
        sa.Column("units_per_euro", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("fetched_at", UTC_TIME, nullable=False),
        sa.PrimaryKeyConstraint("as_of", "currency", name=op.f("pk_exchange_rate")),
    )


def downgrade() -> None:
    op.drop_table("exchange_rate")
