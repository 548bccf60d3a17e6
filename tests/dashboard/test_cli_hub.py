"""`hf:owner/name` through the real client against a hub on this machine: what is asked, kept, believed."""

import json
import os
import time
from pathlib import Path

import pytest

from dashboard.files.hub import FIRST_SAFETENSORS_BYTES, HubName, Repository
from dashboard.files.hubcopies import FRESH_S, Copies, Copy
from planner.errors import UnreadableModel
from pricing.errors import FetchError
from tests.dashboard.test_cli_bad_input import assert_one_line
from tests.dashboard.test_cli_files import LLAMA_GGUF, TINY, TINY_ENDS, TINY_LAYERS
from tests.planner.reading.ggufs import llama_8b_fields
from tests.planner.reading.published import llama_8b
from tests.planner.reading.tensorfiles import data_bytes, gguf_file_bytes, gguf_start, safetensors_start
from tests.pricing.loopback import Handler, LoopbackServer

GPU = ("--gpu", "H100 SXM", "--json")
ROOT = "/hf/acme/tiny/resolve/main"
TOKEN = "hf_0123456789abcdef"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub without models, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with LoopbackServer() as server:
        monkeypatch.setenv("BREAKEVEN_HF_BASE_URL", server.url + "/hf")
        yield server


def ranged(start, size):
    """Answer with the part that was asked for, of a file whose data nobody may ask for."""

    def answer(handler: Handler) -> None:
        first, _, last = handler.headers["Range"].removeprefix("bytes=").partition("-")
        body = start[int(first) : int(last) + 1]
        assert body, "asked for the data of a file"
        handler.reply(206, body, {"Content-Range": f"bytes {first}-{int(first) + len(body) - 1}/{size}"})

    return answer


def add_shard(server, name, tensors):
    start = safetensors_start(tensors)
    server.add(f"{ROOT}/{name}", answer=ranged(start, len(start) + data_bytes(tensors)))


def add_split_model(server):
    """The smallest Llama in two files."""
    parts = {"a.safetensors": {**TINY_ENDS, **TINY_LAYERS[0]}, "b.safetensors": TINY_LAYERS[1]}
    server.add(f"{ROOT}/config.json", TINY)
    index = {
        "metadata": {"total_size": 4480},
        "weight_map": {tensor: name for name, tensors in parts.items() for tensor in tensors},
    }
    server.add(f"{ROOT}/model.safetensors.index.json", index)
    for name, tensors in parts.items():
        add_shard(server, name, tensors)


def asked(server):
    return [request.path.removeprefix(ROOT + "/") for request in server.received]


def test_a_model_of_the_hub_is_read_to_the_byte(cli, hub):
    add_split_model(hub)
    ran = cli("size", "hf:acme/tiny", *GPU)
    assert ran.code == 0, ran.err
    document = ran.document
    assert (document["model"]["id"], document["model"]["name"]) == ("hf:acme/tiny", "acme/tiny")
    assert document["model"]["total_params"] == 1600 + 2 * (64 + 128)
    assert document["provenance"]["checkpoint_bytes"] == 4480
    assert document["provenance"]["layer_bytes"] == [640, 640]
    assert document["provenance"]["sources"] == ["https://huggingface.co/acme/tiny/resolve/main/config.json"]
    assert asked(hub) == [
        "config.json",
        "hf_quant_config.json",
        "model.safetensors.index.json",
        "a.safetensors",
        "b.safetensors",
    ]
    part = hub.received[-1].headers
    assert part["Range"] == f"bytes=0-{FIRST_SAFETENSORS_BYTES - 1}"
    assert part["Accept-Encoding"] == "identity"


def test_answers_are_kept_and_not_asked_for_again(cli, hub):
    add_split_model(hub)
    first = cli("size", "hf:acme/tiny", *GPU).document
    count = len(hub.received)
    assert cli("size", "hf:acme/tiny", *GPU).document == first
    assert len(hub.received) == count


def test_a_copy_serves_where_the_hub_does_not_answer(cli, hub, monkeypatch, tmp_path):
    add_split_model(hub)
    first = cli("size", "hf:acme/tiny", *GPU).document
    old = time.time() - FRESH_S - 60
    for path in (tmp_path / "cache").rglob("*"):
        os.utime(path, (old, old))
    monkeypatch.setenv("BREAKEVEN_HF_BASE_URL", "http://127.0.0.1:9/hf")
    monkeypatch.setattr("pricing.http.MAX_TRIES", 1)
    ran = cli("size", "hf:acme/tiny", *GPU)
    assert ran.code == 0, ran.err
    assert ran.document["memory"] == first["memory"]
    stale = "the hub did not answer: copies that are more than a week old were read"
    assert stale in ran.document["notes"]
    assert stale not in first["notes"]


def test_without_network_and_copy_nothing_can_be_done(cli, hub, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_HF_BASE_URL", "http://127.0.0.1:9/hf")
    monkeypatch.setattr("pricing.http.MAX_TRIES", 1)
    ran = cli("size", "hf:acme/tiny", *GPU)
    assert_one_line(
        ran, 3, "http://127.0.0.1:9 (for huggingface.co/acme/tiny/resolve/main/config.json) cannot be reached"
    )


def test_a_model_in_one_file_without_an_index_is_read(cli, hub):
    hub.add(f"{ROOT}/config.json", TINY)
    add_shard(hub, "model.safetensors", {**TINY_ENDS, **TINY_LAYERS[0], **TINY_LAYERS[1]})
    record = cli("size", "hf:acme/tiny", *GPU).document["provenance"]
    assert (record["checkpoint_bytes"], record["params_basis"]) == (4480, "exact: elements of its tensors")


def test_a_long_header_is_fetched_to_its_end(cli, hub):
    many = {f"model.layers.0.mlp.experts.{i}.up_proj.weight": ("BF16", (2, 2)) for i in range(2000)}
    assert len(safetensors_start(many)) > FIRST_SAFETENSORS_BYTES
    hub.add(f"{ROOT}/config.json", TINY)
    add_shard(hub, "model.safetensors", {**TINY_ENDS, **many})
    assert cli("size", "hf:acme/tiny", *GPU).document["provenance"]["checkpoint_bytes"] == 3200 + 2000 * 8
    assert asked(hub)[-2:] == ["model.safetensors"] * 2


def test_a_model_without_tensors_is_computed_from_its_configuration(cli, hub):
    hub.add(f"{ROOT}/config.json", llama_8b())
    document = cli("size", "hf:acme/tiny", *GPU).document
    assert document["model"]["total_params"] == 8_030_261_248
    assert document["provenance"]["checkpoint_bytes"] is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"status": 302, "headers": {"Location": "https://evil.example/x"}}, "none of this provider's hosts"),
        ({"body": b"x" * 300_000}, "sent all of a file"),
        ({"status": 206, "body": b"x" * 100}, "does not say how large the file is"),
    ],
)
def test_tensors_that_cannot_be_had_leave_the_index(cli, hub, answer, expected):
    """A file host that is not known, a server that knows no ranges: said, and the index is believed."""
    hub.add(f"{ROOT}/config.json", TINY)
    weight_map = dict.fromkeys([*TINY_ENDS, *TINY_LAYERS[0], *TINY_LAYERS[1]], "a.safetensors")
    index = {"metadata": {"total_size": 4480}, "weight_map": weight_map}
    hub.add(f"{ROOT}/model.safetensors.index.json", index)
    hub.add(f"{ROOT}/a.safetensors", **answer)
    document = cli("size", "hf:acme/tiny", *GPU).document
    assert document["provenance"]["checkpoint_bytes"] == 4480
    assert document["provenance"]["layer_bytes"] is None
    assert any("its tensors could not be read: " in note and expected in note for note in document["notes"])


def test_a_token_goes_to_the_hub_and_nowhere_else(cli, hub, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_HF_API_KEY", TOKEN)
    hub.add(f"{ROOT}/config.json", llama_8b())
    ran = cli("size", "hf:acme/tiny", *GPU)
    assert hub.received[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in ran.out + ran.err
    hub.add("/hf/acme/gated/resolve/main/config.json", status=403)
    ran = cli("size", "hf:acme/gated", *GPU)
    assert_one_line(ran, 3, "hf:acme/gated: not open to all", "BREAKEVEN_HF_API_KEY")
    assert TOKEN not in ran.err


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("hf:acme/nothing", 2, "the repository has no config.json; of GGUF files name one"),
        ("hf:acme", 2, "is not hf:owner/name"),
        ("hf:../../etc", 2, "is not hf:owner/name"),
        ("hf:acme/tiny/../../x.gguf", 2, "is not hf:owner/name"),
        ("hf:acme/tiny?x=1", 2, "is not hf:owner/name"),
    ],
)
def test_names_that_are_none_are_one_line(cli, hub, name, code, expected):
    assert_one_line(cli("size", name, *GPU), code, expected)


@pytest.mark.parametrize("body", [b"<html>login</html>", b"[1]", b"\xff\xfe", b"{}"])
def test_an_answer_that_is_no_configuration_is_one_line(cli, hub, body):
    hub.add(f"{ROOT}/config.json", body)
    assert_one_line(cli("size", "hf:acme/tiny", *GPU), 2, "acme/tiny/resolve/main/config.json")


def test_a_revision_is_asked_for_by_name(cli, hub):
    hub.add("/hf/acme/tiny/resolve/v1.0/config.json", llama_8b())
    assert cli("size", "hf:acme/tiny@v1.0", *GPU).code == 0


def test_a_gguf_file_of_the_hub_is_read_by_its_header(cli, hub, monkeypatch):
    """The header is longer than the first part: more is asked for, never the data."""
    monkeypatch.setattr("dashboard.files.hub.FIRST_GGUF_BYTES", 4096)
    start = gguf_start(llama_8b_fields(), LLAMA_GGUF)
    hub.add(f"{ROOT}/q4/llama.gguf", answer=ranged(start, gguf_file_bytes(start, LLAMA_GGUF)))
    document = cli("size", "hf:acme/tiny/q4/llama.gguf", *GPU).document
    assert (document["quant"], document["engine"]) == ("Q4_K_M", "llama.cpp")
    assert document["model"]["total_params"] == 8_030_261_248 + 64
    assert [request.headers["Range"] for request in hub.received][:2] == ["bytes=0-4095", "bytes=4096-16383"]


def test_nothing_is_asked_of_the_hub_unless_it_is_named(cli, hub, tmp_path):
    folder = tmp_path / "acme" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(llama_8b()))
    assert cli("size", folder, *GPU).code == 0
    assert cli("size", "Qwen/Qwen3-8B", *GPU).code == 0
    assert cli("size", "Acme/Nothing", *GPU).code == 2
    assert hub.received == []


def test_names_of_the_hub_are_read_with_revision_and_file():
    assert HubName.parse("hf:a/b") == HubName(repository="a/b", revision="main", file=None)
    assert HubName.parse("hf:a/b@r1") == HubName(repository="a/b", revision="r1", file=None)
    assert HubName.parse("hf:a/b.c/Q4/x.gguf") == HubName(
        repository="a/b.c", revision="main", file="Q4/x.gguf"
    )
    for wrong in ("hf:", "hf:/b", "hf:a/", "hf:a b/c", "hf:a/b\n", "hf:é/b", "a/b"):
        with pytest.raises(UnreadableModel):
            HubName.parse(wrong)


def test_a_copy_that_is_damaged_is_no_copy(tmp_path):
    copies = Copies(folder=tmp_path / "copies")
    assert copies.get("https://x/1") is None
    copies.keep("https://x/1", Copy(body=b"abc\ndef", whole_bytes=99))
    assert copies.get("https://x/1") == Copy(body=b"abc\ndef", whole_bytes=99)
    (kept,) = (tmp_path / "copies").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert copies.get("https://x/1") is None
    kept.write_bytes(b"\x00\xff")
    assert copies.get("https://x/1") is None


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(hub, tmp_path):
    (tmp_path / "file").write_text("in the way")
    hub.add(f"{ROOT}/config.json", b"{}")
    copies = Copies(folder=Path(tmp_path / "file" / "hf"))
    with Repository(name=HubName.parse("hf:acme/tiny"), environ=os.environ, copies=copies) as repository:
        assert repository.text("config.json") == "{}"
        assert repository.text("nothing.json") is None


def test_a_file_larger_than_allowed_is_refused(hub, tmp_path):
    hub.add(f"{ROOT}/config.json", b"x" * 2000)
    copies = Copies(folder=tmp_path / "copies")
    with (
        Repository(name=HubName.parse("hf:acme/tiny"), environ=os.environ, copies=copies) as repository,
        pytest.raises(FetchError, match="over the 1000 bytes allowed"),
    ):
        repository.text("config.json", most_bytes=1000)


def test_the_list_of_providers_names_the_hub_as_asked_on_request_only(cli, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_HF_API_KEY", TOKEN)
    ran = cli("providers", "--json")
    (hub,) = ran.document["on_request"]
    assert (hub["sources"], hub["key_is_set"]) == (["https://huggingface.co"], True)
    assert "hf" not in {provider["name"] for provider in ran.document["providers"]}
    assert TOKEN not in ran.out
    assert "Asked only where a MODEL is named hf:owner/name" in cli("providers").out
