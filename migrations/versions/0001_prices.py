"""Sources, series, prices with their intervals, runs, reviews."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

OPEN = sa.text("closed_at IS NULL")
UNVERIFIED = sa.text("verdict <> 'verified'")
# Naive UTC on SQLite, which has no zones; the driver would drop an offset silently.
UTC_TIME = sa.DateTime().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "provider_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("started_at", UTC_TIME, nullable=False),
        sa.Column("finished_at", UTC_TIME, nullable=False),
        sa.Column("newest_seen_at", UTC_TIME, nullable=True),
        sa.Column("verified_count", sa.Integer(), nullable=False),
        sa.Column("quarantined_count", sa.Integer(), nullable=False),
        sa.Column("rejected_count", sa.Integer(), nullable=False),
        sa.Column("opened_count", sa.Integer(), nullable=False),
        sa.Column("closed_count", sa.Integer(), nullable=False),
        sa.Column("problem_count", sa.Integer(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=True),
        sa.Column("page_digests", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provider_run")),
    )
    with op.batch_alter_table("provider_run") as batch_op:
        batch_op.create_index(batch_op.f("ix_provider_run_provider_finished_at"), ["provider", "finished_at"])

    op.create_table(
        "series",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("offer_id", sa.String(), nullable=False),
        sa.Column("collector", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("witness", sa.String(), nullable=True),
        sa.Column("instance_type", sa.String(), nullable=False),
        sa.Column("gpu", sa.String(), nullable=True),
        sa.Column("gpu_raw", sa.String(), nullable=False),
        sa.Column("gpu_count", sa.Integer(), nullable=False),
        sa.Column("gpu_fraction", sa.Float(), nullable=True),
        sa.Column("memory_gb_per_gpu", sa.Float(), nullable=True),
        sa.Column("form", sa.String(), nullable=True),
        sa.Column("region", sa.String(), nullable=True),
        sa.Column("region_key", sa.String(), nullable=False),
        sa.Column("tier", sa.String(), nullable=False),
        sa.Column("commitment_days", sa.Integer(), nullable=True),
        sa.Column("gpu_only", sa.Boolean(), nullable=False),
        sa.Column("billing", sa.String(), nullable=True),
        sa.Column("vcpus", sa.Float(), nullable=True),
        sa.Column("ram_gb", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("offer_id", name=op.f("uq_series_offer_id")),
    )
    with op.batch_alter_table("series") as batch_op:
        batch_op.create_index(batch_op.f("ix_series_collector"), ["collector"])
        batch_op.create_index(batch_op.f("ix_series_gpu_provider"), ["gpu", "provider"])
        batch_op.create_index(batch_op.f("ix_series_provider_gpu"), ["provider", "gpu"])

    op.create_table(
        "source",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
        sa.UniqueConstraint("url", name=op.f("uq_source_url")),
    )
    op.create_table(
        "store_value",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_store_value")),
    )
    op.create_table(
        "price",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("series_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=True),
        sa.Column("usd_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("usd_per_month_cap", sa.BigInteger(), nullable=True),
        sa.Column("currency", sa.String(), nullable=False),
        sa.Column("price_original", sa.String(), nullable=True),
        sa.Column("fx_date", sa.String(), nullable=True),
        sa.Column("available", sa.Boolean(), nullable=True),
        sa.Column("first_seen_at", UTC_TIME, nullable=False),
        sa.Column("last_seen_at", UTC_TIME, nullable=False),
        sa.Column("closed_at", UTC_TIME, nullable=True),
        sa.Column("closed_why", sa.String(), nullable=True),
        sa.Column("times_seen", sa.Integer(), nullable=False),
        sa.Column("raw", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["provider_run.id"], name=op.f("fk_price_run_id_provider_run"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_price_series_id_series")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_source_id_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price")),
    )
    with op.batch_alter_table("price") as batch_op:
        batch_op.create_index(
            "ix_price_open",
            ["series_id", "verdict", "usd_per_hour"],
            sqlite_where=OPEN,
            postgresql_where=OPEN,
        )
        batch_op.create_index(batch_op.f("ix_price_series_id_first_seen_at"), ["series_id", "first_seen_at"])
        batch_op.create_index(
            "ix_price_unverified",
            ["last_seen_at"],
            sqlite_where=UNVERIFIED,
            postgresql_where=UNVERIFIED,
        )

    op.create_table(
        "review",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("price_id", sa.Integer(), nullable=False),
        sa.Column("decision", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("decided_at", UTC_TIME, nullable=False),
        sa.ForeignKeyConstraint(["price_id"], ["price.id"], name=op.f("fk_review_price_id_price")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
    )
    with op.batch_alter_table("review") as batch_op:
        batch_op.create_index(batch_op.f("ix_review_price_id"), ["price_id"])


def downgrade() -> None:
    for table in ("review", "price", "store_value", "source", "series", "provider_run"):
        op.drop_table(table)
