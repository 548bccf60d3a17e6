"""A model of one's own on the Size page."""

import json

import pytest
import streamlit as st

from dashboard import data
from dashboard.form import upload
from planner.errors import UnknownArchitecture, UnreadableModel
from tests.dashboard.test_cli_files import LLAMA_GGUF
from tests.dashboard.test_views import opened, texts
from tests.planner.reading.ggufs import llama_8b_fields
from tests.planner.reading.published import llama_8b, qwen3_0_6b
from tests.planner.reading.tensorfiles import gguf_start

HEADER = gguf_start(llama_8b_fields(), LLAMA_GGUF)


@pytest.fixture(autouse=True)
def _fresh_server(monkeypatch, now):
    st.cache_resource.clear()
    st.cache_data.clear()
    monkeypatch.setattr(data, "now", lambda: now)


def put(test, name, content):
    """Put a file there, as a browser would."""
    return test.file_uploader(key="model_file").upload(name, content, "application/octet-stream").run()


def figure(test, title):
    return next(metric.value for metric in test.metric if metric.label == title)


def test_a_configuration_and_the_start_of_a_gguf_file_are_read():
    plain = upload.read("config.json", json.dumps(llama_8b()).encode())
    assert (plain.model.main_params, plain.quant, plain.is_gguf) == (8_030_261_248, None, False)
    start = upload.read("llama.gguf", HEADER + b"\0" * 1000)
    assert (start.model.main_params, start.quant, start.is_gguf) == (8_030_261_312, "Q4_K_M", True)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("config.json", b"", "not JSON"),
        ("config.json", b"\xff\xfe", "not UTF-8 text"),
        ("config.json", b"[]", "no JSON object"),
        ("x.gguf", b"<html>", "does not start with GGUF"),
        ("x.gguf", HEADER[:4000], "goes on behind these 4,000 bytes; give more of its start"),
    ],
)
def test_what_is_no_model_is_refused(name, content, expected):
    with pytest.raises(UnreadableModel, match=expected):
        upload.read(name, content)


def test_facts_that_are_open_are_named():
    with pytest.raises(UnknownArchitecture, match="ffn_matrices"):
        upload.read("config.json", json.dumps(llama_8b(model_type="brand_new")).encode())


def test_the_page_sizes_the_file_and_shows_no_price_of_another_model(database):
    before = opened("size", model="llama-3.1-8b-instruct", gpu="H100 SXM")
    prices = [metric.label for metric in before.metric]
    assert "USD/M tokens" in prices
    test = put(before, "my-qwen.json", json.dumps(qwen3_0_6b()).encode())
    assert [error.value for error in test.exception] == []
    assert [error.value for error in test.error] == []
    assert "my-qwen in Q4" in test.subheader[0].value.replace("\\", "")
    assert float(figure(test, "Needed [GiB]")) < 3
    assert "USD/M tokens" not in [metric.label for metric in test.metric]
    words = texts(test).replace("\\", "")
    assert "This is my-qwen from your file, not the model chosen above." in words


def test_a_gguf_file_is_taken_in_its_own_format(database):
    test = put(opened("size", gpu="H100 SXM", quant="FP8"), "llama.gguf", HEADER)
    assert [error.value for error in test.error] == []
    words = texts(test).replace("\\", "")
    assert "This is Llama 3.1 8B from your file, in Q4_K_M as its file holds it" in words
    assert "Llama 3.1 8B in Q4_K_M fits" in words


def test_a_bad_file_is_one_line_and_the_page_stays(database):
    test = put(opened("size", gpu="H100 SXM"), "config.json", b"{}")
    assert len(test.error) == 1
    assert "no configuration of a language model" in test.error[0].value.replace("\\", "")
    assert [error.value for error in test.exception] == []
    assert test.metric
