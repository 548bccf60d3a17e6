"""How Alembic runs our migrations: on the connection given by `pricing.storage.database`, or its own."""

import os
from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection

from pricing.settings import Settings
from pricing.storage.columns import Usd, UtcTime
from pricing.storage.engines import find_target, migrating_engine
from pricing.tables import METADATA


def render_item(kind: str, item: Any, autogen_context: Any) -> str | Literal[False]:
    """Write plain SQLAlchemy types, so that a revision never imports the program it upgrades."""
    del autogen_context
    if kind != "type":
        return False
    if isinstance(item, Usd):
        return "sa.BigInteger()"
    if isinstance(item, UtcTime):
        return "UTC_TIME"
    if type(item).__name__ == "AutoString":
        return "sa.String()"
    return False


def run(connection: Connection) -> None:
    """Bring the schema of the given connection to the wanted revision, in one transaction."""
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        render_as_batch=True,
        render_item=render_item,
        transactional_ddl=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    engine = migrating_engine(find_target(Settings.from_environ(os.environ).database_url))
    with engine.begin() as connection:
        run(connection)
    engine.dispose()
