"""The web interface: its pages, the frame around them, and the guard against tracebacks."""

import streamlit as st

from dashboard import address, frame, parts

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
    pages = {
        name: st.Page(f"views/{name}.py", title=title, default=name == "decide", url_path=name)
        for name, title, _ in PAGES
    }
    page = st.navigation(list(pages.values()), position="hidden")  # own links take the question along
    name, open_fields = {title: (name, fields) for name, title, fields in PAGES}[page.title]
    with parts.guarded():
        drawn = frame.open_frame(name, open_fields, pages)
        page.run()
        address.write(drawn.scenario, drawn.page)  # filters of the page may have been drawn since


if __name__ == "__main__":  # as Streamlit calls it
    run()
