"""Pages without a browser: open one, and read what it says."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import app, data

APP = Path(app.__file__)


@pytest.fixture(autouse=True)
def fresh_server(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    """Nothing cached by the test before, and a fixed present."""
    st.cache_resource.clear()
    st.cache_data.clear()
    monkeypatch.setattr(data, "now", lambda: now)


def opened(page: str = "decide", **query: Any) -> AppTest:
    """Open a page as a browser would."""
    test = AppTest.from_file(str(APP), default_timeout=60)
    if page != "decide":
        test.switch_page(f"views/{page}.py")
    test.query_params = dict(query)
    return test.run()


def texts(test: AppTest) -> str:
    """Return all words of a page but those in tables and charts."""
    kinds = (test.subheader, test.markdown, test.caption, test.info, test.warning, test.error)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def words_table(test: AppTest, column: str) -> pd.DataFrame:
    """Return the first table of wrapped words that has this column, as it is read."""
    found = [table.value.rename(columns=unescaped).map(unescaped) for table in test.table]
    return next(table for table in found if column in table.columns)


def unescaped(markdown: str) -> str:
    """Return Markdown as it is read."""
    return re.sub(r"\\(.)", r"\1", markdown)
