"""The web interface: its pages, the frame around them, and the guard against tracebacks."""

import streamlit as st

from dashboard import parts

# Page, path, fields that are not folded there. The first one answers at `/`.
PAGES = (
    ("decide", "Decide", ("model", "hours_per_day", "quant", "budget_usd", "electricity_usd_per_kwh")),
    ("size", "Size", ("model", "quant", "context", "gpu", "gpus")),
    ("market", "Market", ()),
    ("compare", "Compare", ("model", "quant", "context", "batch")),
    ("method", "Method", ()),
)


def run() -> None:
    """Draw the page that the address names."""
    st.set_page_config(
        page_title="breakeven: rent, buy or call an API",
        page_icon="⚖️",  # drawn by the browser; an icon name would be fetched from another host
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    pages = [
        st.Page(f"views/{name}.py", title=title, default=name == "decide", url_path=name)
        for name, title, _ in PAGES
    ]
    page = st.navigation(pages, position="top")
    open_fields = {title: fields for _, title, fields in PAGES}[page.title]
    with parts.guarded():
        parts.open_frame(open_fields)
        page.run()


if __name__ == "__main__":  # as Streamlit calls it
    run()
