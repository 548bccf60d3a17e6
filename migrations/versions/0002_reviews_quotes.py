"""Who decided a review; own quotes for hardware; the cheapest of each machine from an index."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UTC_TIME = sa.DateTime().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "quote",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("gpu", sa.String(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("condition", sa.String(), nullable=False),
        sa.Column("usd", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(), nullable=False),
        sa.Column("price_original", sa.String(), nullable=False),
        sa.Column("fx_date", sa.String(), nullable=True),
        sa.Column("as_of", sa.String(), nullable=False),
        sa.Column("seller", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("notes", sa.String(), nullable=False),
        sa.Column("imported_at", UTC_TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quote")),
    )
    with op.batch_alter_table("quote") as batch_op:
        batch_op.create_index(batch_op.f("ix_quote_gpu"), ["gpu"])

    with op.batch_alter_table("review") as batch_op:
        batch_op.add_column(sa.Column("decided_by", sa.String(), nullable=True))

    with op.batch_alter_table("series") as batch_op:
        batch_op.drop_index(batch_op.f("ix_series_gpu_provider"))
        batch_op.create_index(
            batch_op.f("ix_series_gpu_provider_gpu_count_tier_billing"),
            ["gpu", "provider", "gpu_count", "tier", "billing"],
        )


def downgrade() -> None:
    with op.batch_alter_table("series") as batch_op:
        batch_op.drop_index(batch_op.f("ix_series_gpu_provider_gpu_count_tier_billing"))
        batch_op.create_index(batch_op.f("ix_series_gpu_provider"), ["gpu", "provider"])
    with op.batch_alter_table("review") as batch_op:
        batch_op.drop_column("decided_by")
    op.drop_table("quote")
