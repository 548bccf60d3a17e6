"""The store of prices, opened as the environment says."""

from dashboard.commands.base import Context
from pricing.settings import Settings
from pricing.store import Store


def open_store(context: Context) -> Store:
    """Open the database: created, upgraded and filled with the bundled prices where that is due."""
    return Store.open(Settings.from_environ(context.environ).database_url)
