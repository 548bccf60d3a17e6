"""Prices of API tokens as intervals, as fetched."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

UTC_TIME = sa.DateTime().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "token_price",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("usd_per_mtok_input", sa.String(), nullable=False),
        sa.Column("usd_per_mtok_output", sa.String(), nullable=False),
        sa.Column("usd_per_mtok_cached_input", sa.String(), nullable=True),
        sa.Column("notes", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("first_seen_at", UTC_TIME, nullable=False),
        sa.Column("last_seen_at", UTC_TIME, nullable=False),
        sa.Column("verified_at", UTC_TIME, nullable=True),
        sa.Column("closed_at", UTC_TIME, nullable=True),
        sa.Column("closed_why", sa.String(), nullable=True),
        sa.Column("times_seen", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token_price")),
    )
    op.create_index(op.f("ix_token_price_provider_model"), "token_price", ["provider", "model"])


def downgrade() -> None:
    op.drop_index(op.f("ix_token_price_provider_model"), table_name="token_price")
    op.drop_table("token_price")
