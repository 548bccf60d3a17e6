"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}

# Naive UTC on SQLite, which has no zones; the driver would drop an offset silently.
UTC_TIME = sa.DateTime().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
