"""MODEL as a file: a configuration, a folder, tensors or their index beside it, GGUF files."""

import csv
import json
import os
import shutil

import pytest

from dashboard.files.modelfiles import is_file_name
from planner.catalogues.models import all_models
from tests.dashboard.test_cli_bad_input import assert_one_line
from tests.planner.reading.ggufs import llama_8b_ends, llama_8b_fields, llama_8b_tensors
from tests.planner.reading.published import deepseek_v3, llama_8b, qwen3_0_6b
from tests.planner.reading.tensorfiles import (
    data_bytes,
    gguf_file_bytes,
    gguf_start,
    safetensors_start,
)

GPU = ("--gpu", "H100 SXM")
GIB = 2**30
LLAMA_GGUF = {**llama_8b_ends(), **llama_8b_tensors()}
# Two layers of width 8, heads of 4, words of 100: the smallest thing that is a Llama.
TINY = llama_8b(
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    intermediate_size=16,
    vocab_size=100,
)
TINY_ENDS = {"model.embed_tokens.weight": ("BF16", (100, 8)), "lm_head.weight": ("BF16", (100, 8))}
TINY_LAYERS = [
    {
        f"model.layers.{layer}.self_attn.q_proj.weight": ("BF16", (8, 8)),
        f"model.layers.{layer}.mlp.up_proj.weight": ("F32", (16, 8)),
    }
    for layer in range(2)
]


def write(path, content):
    """Write a file, JSON where it is no bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def write_start(path, start, size):
    """Write the start of a file whose data are a hole."""
    write(path, start)
    os.truncate(path, size)
    return path


def write_safetensors(path, tensors):
    start = safetensors_start(tensors)
    return write_start(path, start, len(start) + data_bytes(tensors))


def write_gguf(path, fields, tensors):
    start = gguf_start(fields, tensors)
    return write_start(path, start, gguf_file_bytes(start, tensors))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hf:a/b", True),
        ("./x", True),
        ("..", True),
        (".", True),
        ("/a/b", True),
        ("~/x", True),
        ("x.gguf", True),
        ("config.json", True),
        ("C:\\models\\x", True),
        ("qwen3-8b", False),
        ("Qwen/Qwen3-8B", False),
        ("unsloth/Qwen3-8B-GGUF:Q4_K_M", False),
        (".5b", False),
    ],
)
def test_a_name_that_is_meant_as_a_file_is_told_from_one_of_the_catalogue(name, expected):
    assert is_file_name(name) is expected


def test_a_configuration_is_sized_like_the_same_model_of_the_catalogue(cli, tmp_path):
    path = write(tmp_path / "my-llama" / "config.json", llama_8b())
    mine = cli("size", path, *GPU, "--json").document
    known = cli("size", "llama-3.1-8b-instruct", *GPU, "--json").document
    assert (mine["model"]["id"], mine["model"]["name"], mine["model"]["evidence"]) == (
        "file:my-llama",
        "my-llama",
        "config",
    )
    assert mine["model"]["total_params"] == known["model"]["total_params"] == 8_030_261_248
    for name in ("weights_gib", "kv_cache_gib", "runtime_gib"):
        assert mine["memory"][name] == pytest.approx(known["memory"][name], rel=1e-4)
    assert mine["memory"]["basis"] == "config-formula"
    record = mine["provenance"]
    assert record["layers"] == {"full": 32}
    assert record["checkpoint_bytes"] is None
    assert record["sources"] == [str(path)]


def test_a_stated_number_of_parameters_wins_over_the_count(cli, tmp_path):
    path = write(tmp_path / "config.json", llama_8b())
    ran = cli("size", path, "--params", "32b", *GPU, "--quant", "BF16", "--json")
    assert ran.document["model"]["total_params"] == 32_000_000_000
    assert ran.document["model"]["evidence"] == "user"
    assert ran.document["memory"]["weights_gib"] == pytest.approx(64e9 / GIB)
    doubt = (
        "the configuration counts 8,030,261,248 parameters, -74.9% from 32,000,000,000 (stated by the user)"
    )
    assert doubt in ran.document["notes"]
    both = cli("size", path, "--params", "35b-a3b", *GPU, "--json").document["model"]
    assert (both["total_params"], both["active_params"]) == (35_000_000_000, 3_000_000_000)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("many", "a number of parameters such as 32b"),
        ("-5b", "a number of parameters such as 32b"),
        ("0", "a number of parameters such as 32b"),
        ("1e30", "a number of parameters such as 32b"),
        ("3b-a35b", "no more active parameters than there are"),
        ("8,5b", "a number of parameters such as 32b"),
    ],
)
def test_a_number_of_parameters_that_is_none_is_refused(cli, tmp_path, params, expected):
    path = write(tmp_path / "config.json", llama_8b())
    assert_one_line(cli("size", path, f"--params={params}", *GPU), 2, "--params", expected)


def test_what_is_stated_is_for_files_alone(cli):
    assert_one_line(cli("size", "qwen3-8b", "--params", "8b", *GPU), 2, "qwen3-8b is in the catalogue")


def test_missing_facts_are_named_and_taken_as_options(cli, tmp_path):
    config = llama_8b(model_type="brand_new")
    del config["num_attention_heads"]
    path = write(tmp_path / "config.json", config)
    ran = cli("size", path, *GPU)
    assert_one_line(ran, 2, "'brand_new'", "--fact num_attention_heads=VALUE")
    ran = cli("size", path, *GPU, "--fact", "num_attention_heads=32", "--fact", "ffn_matrices=3", "--json")
    assert ran.document["model"]["total_params"] == 8_030_261_248
    assert "stated by the user: ffn_matrices=3, num_attention_heads=32" in ran.document["notes"]
    assert_one_line(cli("size", path, *GPU, "--fact", "heads"), 2, "--fact: 'heads'", "NAME=VALUE")


def test_a_folder_is_read_by_the_configuration_in_it(cli, tmp_path):
    write(tmp_path / "Qwen3-0.6B" / "config.json", qwen3_0_6b())
    ran = cli("size", tmp_path / "Qwen3-0.6B", *GPU, "--json")
    assert ran.document["model"]["name"] == "Qwen3-0.6B"
    assert_one_line(cli("size", tmp_path, *GPU), 2, "holds no config.json and no .gguf file")


def test_tensors_beside_a_configuration_give_exact_bytes(cli, tmp_path):
    """Embedding 1,600 and head 1,600, two layers of 128 + 512 bytes."""
    write(tmp_path / "config.json", TINY)
    write_safetensors(tmp_path / "model.safetensors", {**TINY_ENDS, **TINY_LAYERS[0], **TINY_LAYERS[1]})
    for name in (tmp_path, tmp_path / "config.json", tmp_path / "model.safetensors"):
        ran = cli("size", name, *GPU, "--quant", "BF16", "--json")
        assert ran.document["model"]["total_params"] == 1600 + 2 * (64 + 128)
        assert ran.document["memory"]["weights_gib"] == (3200 + 2 * 640) / GIB
        assert ran.document["memory"]["basis"] == "official-size"
        assert ran.document["provenance"]["layer_bytes"] == [640, 640]
        assert ran.document["provenance"]["checkpoint_bytes"] == 4480


def test_tensors_in_several_files_are_found_by_their_index(cli, tmp_path):
    """Files that the index does not name are other formats of the same weights."""
    write(tmp_path / "config.json", TINY)
    parts = {"a.safetensors": {**TINY_ENDS, **TINY_LAYERS[0]}, "b.safetensors": TINY_LAYERS[1]}
    for name, tensors in parts.items():
        write_safetensors(tmp_path / name, tensors)
    write_safetensors(tmp_path / "consolidated.safetensors", {**TINY_ENDS})
    weight_map = {tensor: name for name, tensors in parts.items() for tensor in tensors}
    index = write(
        tmp_path / "model.safetensors.index.json",
        {"metadata": {"total_size": 4480}, "weight_map": weight_map},
    )
    for name in (tmp_path, index):
        record = cli("size", name, *GPU, "--json").document["provenance"]
        assert (record["checkpoint_bytes"], record["layer_bytes"]) == (4480, [640, 640])
    (tmp_path / "b.safetensors").unlink()
    record = cli("size", tmp_path, *GPU, "--json").document["provenance"]
    assert (record["checkpoint_bytes"], record["layer_bytes"]) == (4480, None)
    assert record["checkpoint_basis"] == "bytes by the index of its files"


def test_an_index_alone_gives_the_exact_size(cli, tmp_path):
    """Stored elements are its bytes over the dtype, served ones the count: a draft layer is stored too."""
    config = deepseek_v3(quantization_config=None)
    write(tmp_path / "config.json", config)
    names = ["model.embed_tokens.weight", "model.layers.61.eh_proj.weight"]
    weight_map = dict.fromkeys(names, "model-00001-of-00002.safetensors")
    total = 2 * 682_540_000_000
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    write(tmp_path / "model.safetensors.index.json", index)
    ran = cli("size", tmp_path, *GPU, "--quant", "BF16", "--json")
    assert ran.document["provenance"]["stored_params"] == 682_540_000_000
    assert ran.document["provenance"]["checkpoint_bytes"] == total
    served = ran.document["model"]["total_params"]
    assert served == pytest.approx(all_models()["deepseek-v3-0324"].main_params, rel=1e-6)
    assert ran.document["memory"]["weights_gib"] == pytest.approx(2 * served / GIB)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (b"not json", "not JSON"),
        ({"weight_map": {}}, "it has no weight_map"),
        ({"weight_map": {"a": 1}}, "names no files"),
        ({"weight_map": {"a": "../../etc/passwd"}}, "names files outside of its folder"),
        ({"weight_map": {"a": "/etc/passwd"}}, "names files outside of its folder"),
    ],
)
def test_an_index_that_is_none_is_refused(cli, tmp_path, index, expected):
    write(tmp_path / "config.json", TINY)
    write(tmp_path / "model.safetensors.index.json", index)
    assert_one_line(cli("size", tmp_path, *GPU), 2, "model.safetensors.index.json", expected)


@pytest.mark.parametrize(
    ("start", "size", "expected"),
    [
        (b"", 0, "no safetensors file: 0 bytes"),
        (b"\xff" * 8, 100, "claims a header of"),
        (b"\x10" + b"\0" * 7 + b"[" * 16, 24, "not JSON"),
        (safetensors_start(TINY_ENDS), 1000, "cut off or overlong"),
        (safetensors_start(TINY_ENDS)[:60], 60, "cut off"),
    ],
)
def test_tensors_that_are_none_are_refused(cli, tmp_path, start, size, expected):
    write(tmp_path / "config.json", TINY)
    write_start(tmp_path / "model.safetensors", start, size)
    assert_one_line(cli("size", tmp_path, *GPU), 2, "model.safetensors", expected)


def test_tensors_without_a_configuration_are_not_enough(cli, tmp_path):
    path = write_safetensors(tmp_path / "model.safetensors", TINY_ENDS)
    assert_one_line(cli("size", path, *GPU), 2, "tensors without a config.json")


def test_a_format_named_beside_the_configuration_is_taken(cli, tmp_path):
    write(tmp_path / "config.json", llama_8b())
    write(tmp_path / "hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}})
    ran = cli("size", tmp_path, *GPU, "--json")
    assert (ran.document["quant"], ran.document["engine"]) == ("FP8", "vllm")
    assert "holds its weights in FP8: --quant FP8 is taken" in ran.err


def test_a_gguf_file_is_sized_by_its_own_bytes(cli, tmp_path):
    path = write_gguf(tmp_path / "llama-q4.gguf", llama_8b_fields(), LLAMA_GGUF)
    ran = cli("size", path, *GPU, "--json")
    document = ran.document
    assert (document["model"]["name"], document["quant"], document["engine"]) == (
        "Llama 3.1 8B",
        "Q4_K_M",
        "llama.cpp",
    )
    stored = document["provenance"]["checkpoint_bytes"]
    assert document["memory"]["weights_gib"] == stored / GIB
    # All but what lies outside of layers: embedding, head, a norm and 64 factors.
    outside = 4096 * 128256 * (144 + 210) / 256 + 4 * (4096 + 64)
    assert sum(document["provenance"]["layer_bytes"]) == stored - outside
    text = cli("size", path, *GPU)
    assert f"its files: {stored / 1e9:.2f} GB (bytes of its tensors)" in text.out
    assert "layers: 32 full (known from: the header of its GGUF file)" in text.out
    # The format that another engine would need is an estimate again.
    other = cli("size", path, *GPU, "--quant", "FP8", "--engine", "vllm", "--json").document
    assert other["memory"]["basis"] == "config-formula"
    # Matrices in 8 bits, embedding and head in 16.
    assert other["memory"]["weights_gib"] == pytest.approx(
        (6_979_588_160 + 2 * 1_050_673_152) / GIB, rel=1e-3
    )


def test_a_folder_with_one_gguf_model_is_that_model(cli, tmp_path):
    first = {**llama_8b_ends(), **llama_8b_tensors(range(16))}
    second = llama_8b_tensors(range(16, 32))
    split = {"split.count": 2, "split.no": 0, "split.tensors.count": len(first) + len(second)}
    one = write_gguf(tmp_path / "llama-00001-of-00002.gguf", {**llama_8b_fields(), **split}, first)
    two = write_gguf(tmp_path / "llama-00002-of-00002.gguf", {"split.no": 1}, second)
    write(tmp_path / "mmproj-llama.gguf", b"never opened")
    for name in (tmp_path, one):
        document = cli("size", name, *GPU, "--json").document
        assert document["model"]["total_params"] == 8_030_261_248 + 64
        assert len(document["provenance"]["layer_bytes"]) == 32
        encoder = "mmproj-llama.gguf beside it is an encoder of images or sound: not counted"
        assert encoder in document["notes"]
    assert_one_line(cli("size", two, *GPU), 2, "part 2 of 2; name the first part")
    two.rename(tmp_path / "gone.bin")
    assert_one_line(cli("size", one, *GPU), 2, "1 of its 2 parts are missing: llama-00002-of-00002.gguf")
    one.rename(tmp_path / "renamed.gguf")
    assert_one_line(cli("size", tmp_path / "renamed.gguf", *GPU), 2, "one of 2 parts, the first of which")
    shutil.copy(tmp_path / "renamed.gguf", tmp_path / "other.gguf")
    assert_one_line(cli("size", tmp_path, *GPU), 2, "holds 2 models; name one")


def test_gguf_files_that_lie_or_are_cut_are_one_line(cli, tmp_path):
    start = gguf_start(llama_8b_fields(), LLAMA_GGUF)
    size = gguf_file_bytes(start, LLAMA_GGUF)
    lies = {
        "empty": (b"", 0, "cut off at byte 0"),
        "text": (b"hello, this is no model at all", 30, "does not start with GGUF"),
        "header": (start[:5000], 5000, "cut off"),
        "data": (start, size - 1000, "1,000 more than there are"),
        "counts": (gguf_start(llama_8b_fields(), LLAMA_GGUF, counts=(2**60, 2**60)), size, "claims"),
    }
    for name, (content, length, expected) in lies.items():
        path = write_start(tmp_path / f"{name}.gguf", content, length)
        assert_one_line(cli("size", path, *GPU, "--json"), 2, f"{name}.gguf", expected)


def test_what_is_no_file_of_a_model_is_one_line(cli, tmp_path):
    (tmp_path / "folder.gguf").mkdir()
    cases = {
        tmp_path / "nowhere" / "config.json": "No such file",
        tmp_path / "folder.gguf": "holds no config.json and no .gguf file",
        write(tmp_path / "html.json", b"<html>"): "not JSON",
        write(tmp_path / "latin.json", b'{"a": "\xe9"}'): "not UTF-8 text",
        write(tmp_path / "list.json", [1]): "no JSON object",
        write(tmp_path / "other.json", {"version": 1}): "no configuration of a language model",
        write(tmp_path / "negative.json", llama_8b(hidden_size=-4096)): "hidden_size is -4096",
        write(
            tmp_path / "heads.json", llama_8b(num_attention_heads=33)
        ): "a divisor of the 33 attention heads",
        write(tmp_path / "huge.json", llama_8b(vocab_size=10**12)): "vocab_size is 1000000000000",
    }
    for path, expected in cases.items():
        assert_one_line(cli("size", path, *GPU, "--json"), 2, expected)


def test_a_pipe_is_not_waited_for(cli, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    assert_one_line(cli("size", tmp_path / "pipe.json", *GPU), 2, "not a file")


def test_a_context_above_the_maximum_is_answered_and_warned_of(cli, tmp_path):
    path = write(tmp_path / "config.json", llama_8b())
    ran = cli("size", path, *GPU, "--context", "200000", "--json")
    assert ran.code == 0
    assert "200,000 tokens are above the model's maximum of 131,072" in ran.err
    assert "context 200,000 is above the model's maximum of 131,072 tokens" in ran.document["notes"]


def test_rows_tell_files_of_one_name_apart(cli, tmp_path):
    one = write(tmp_path / "a" / "model" / "config.json", llama_8b())
    two = write(tmp_path / "b" / "model" / "config.json", qwen3_0_6b())
    gguf = write_gguf(tmp_path / "llama.gguf", llama_8b_fields(), LLAMA_GGUF)
    bad = write(tmp_path / "bad.json", b"{")
    models = [one, two, "llama-3.1-8b-instruct", one, gguf, bad, tmp_path / "none.gguf", "hf:broken", two]
    rows = tmp_path / "in.csv"
    rows.write_text("model,gpu,quant\n" + "".join(f"{name},H100 SXM,Q4_K_M\n" for name in models))
    ran = cli("size", "--rows", rows, "-o", tmp_path / "out.csv")
    assert ran.code == 1  # three of nine are no models
    with (tmp_path / "out.csv").open(newline="") as file:
        out = list(csv.DictReader(file))
    weights = [row["weights_gib"] and float(row["weights_gib"]) for row in out]
    assert weights[0] == weights[3] == pytest.approx(weights[2], rel=1e-4)
    assert weights[1] == weights[8] < 0.5
    assert weights[4] == cli("size", gguf, *GPU, "--json").document["memory"]["weights_gib"]
    assert [bool(row["error"]) for row in out] == [False] * 5 + [True] * 3 + [False]
    assert "No such file" in out[6]["error"]


def test_parameters_stated_for_rows_are_those_of_their_files(cli, tmp_path):
    path = write(tmp_path / "config.json", llama_8b())
    rows = tmp_path / "in.csv"
    rows.write_text(f"model,gpu,quant\n{path},H100 SXM,BF16\nllama-3.1-8b-instruct,H100 SXM,BF16\n")
    cli("size", "--rows", rows, "-o", tmp_path / "out.csv", "--params", "16b")
    with (tmp_path / "out.csv").open(newline="") as file:
        weights = [float(row["weights_gib"]) for row in csv.DictReader(file)]
    assert weights == [pytest.approx(32e9 / GIB), pytest.approx(16.06e9 / GIB, rel=1e-3)]


def test_the_other_commands_take_files_too(cli, database, tmp_path):
    path = write(tmp_path / "my-llama" / "config.json", llama_8b())
    plan = cli("plan", path, "--json")
    assert plan.code == 0
    assert plan.document["options"]
    assert plan.document["scenario"]["model"] == str(path)
    # No API is asked for a model that only has the same name or shape.
    assert {option["kind"] for option in plan.document["options"]} <= {"rent", "buy"}
    known = cli("plan", "llama-3.1-8b-instruct", "--json").document["options"]
    cheapest = next(option for option in known if option["kind"] == "rent")
    mine = next(option for option in plan.document["options"] if option["kind"] == "rent")
    assert mine["name"] == cheapest["name"]
    assert mine["usd_per_month"] == pytest.approx(cheapest["usd_per_month"], rel=1e-6)
    assert cli("export", path, "-o", tmp_path / "plan.csv").code == 0
    screen = cli("capacity", path, *GPU, "--json").document
    assert screen["layers"]["by_kind"] == {"full": 32}
    assert screen["rows"][0]["weights_gb"] == pytest.approx(16.06, abs=0.01)
    assert cli("matrix", path, *GPU, "--json").document["rows"]
    assert cli("finetune", path, "--json").document["rows"]
    assert cli("launch", path, *GPU, "--json").code == 0
    assert_one_line(cli("plan", path, "--url"), 2, "--url", "opens no file by its address")


def test_a_scenario_keeps_the_file_and_what_was_stated(cli, database, tmp_path):
    config = llama_8b(model_type="brand_new")
    path = write(tmp_path / "config.json", config)
    saved = tmp_path / "scenario.toml"
    options = ("--params", "9b", "--fact", "ffn_matrices=3", "--fact", "hidden_act=silu")
    first = cli("plan", path, *options, "--save-scenario", saved, "--json")
    assert first.code == 0, first.err
    again = cli("plan", "--scenario", saved, "--json")
    assert again.code == 0, again.err
    assert again.document["scenario"] == first.document["scenario"]
    assert again.document["scenario"]["fact"] == ["ffn_matrices=3", "hidden_act=silu"]
    assert again.document["options"] == first.document["options"]
