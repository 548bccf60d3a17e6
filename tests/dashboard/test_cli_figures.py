"""The figures of the sizing page, through the command line (`--method simple`)."""

import pytest

MODEL = "qwen3-coder-480b-a35b"
H100 = ("--gpu", "H100 SXM")
QUANTS = ("BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "UD-Q2_K_XL")


@pytest.fixture
def simple(cli):
    """Size by the page's arithmetic and return the document."""

    def run(*options, model=MODEL):
        ran = cli("size", model, *H100, "--method", "simple", "--json", *options)
        assert ran.code == 0, ran.err
        assert ran.document["schema"] == "breakeven.size/1"
        return ran.document

    return run


@pytest.mark.parametrize(
    ("quant", "weights_gib"),
    list(zip(QUANTS, (894.07, 474.97, 366.57, 318.14, 271.39, 237.76, 218.73, 154.05), strict=True)),
)
def test_weights(simple, quant, weights_gib):
    assert simple("--quant", quant)["memory"]["weights_gib"] == pytest.approx(weights_gib, abs=0.005)


@pytest.mark.parametrize(
    ("context", "kv_dtype", "kv_cache_gib"),
    [
        (8192, "fp16", 1.94),
        (32768, "fp16", 7.75),
        (8192, "fp8", 0.97),
        (8192, "q8_0", 0.97),
        (32768, "fp8", 3.875),
    ],
)
def test_kv_cache(simple, context, kv_dtype, kv_cache_gib):
    memory = simple("--context", context, "--kv-dtype", kv_dtype)["memory"]
    assert memory["kv_cache_gib"] == pytest.approx(kv_cache_gib, abs=0.005)


def test_one_h100_does_not_hold_it(simple):
    document = simple()
    memory = document["memory"]
    assert (document["quant"], document["context_tokens"], document["batch"]) == ("Q4_K_M", 8192, 1)
    assert memory["runtime_gib"] == pytest.approx(0.57, abs=0.005)
    assert memory["total_gib"] == pytest.approx(273.90, abs=0.005)
    assert memory["total_gb"] == pytest.approx(294.1, abs=0.05)
    assert memory["usable_gib"] == pytest.approx(76.0)
    assert memory["fits"] is False


@pytest.mark.parametrize(
    ("quant", "tokens_per_s"), list(zip(QUANTS, (0.9, 1.7, 2.4, 2.8, 3.4, 4.1, 4.6, 8.2), strict=True))
)
def test_decode_with_weights_spilling_over_the_host_link(simple, quant, tokens_per_s):
    speed = simple("--quant", quant)["speed"]
    assert speed["decode_tokens_per_s"] == pytest.approx(tokens_per_s, rel=0.10)
    assert speed["bound"] == "host"


def test_prefill(simple):
    speed = simple()["speed"]
    assert speed["prefill_tokens_per_s"] == pytest.approx(7347, rel=0.001)
    assert 4096 / speed["prefill_tokens_per_s"] * 1000 == pytest.approx(558, abs=1)


@pytest.mark.parametrize(("method", "total_gib"), [("full", 3668.38), ("lora", 903.0), ("qlora", 277.0)])
def test_fine_tuning(cli, method, total_gib):
    ran = cli("finetune", MODEL, "--method", "simple", "--json")
    assert ran.code == 0, ran.err
    totals = {row["tuning"]: row["simple"]["total_gib"] for row in ran.document["rows"]}
    tolerance = 0.005 if method == "full" else 1.0
    assert totals[method] == pytest.approx(total_gib, abs=tolerance)


def test_layers_of_a_hybrid_model(cli):
    ran = cli("capacity", "qwen3.5-35b-a3b", *H100, "--json")
    layers = ran.document["layers"]
    assert (layers["linear"], layers["full"]) == (30, 10)


def test_weight_floor_and_reserve_of_the_capacity_screen(cli):
    ran = cli("capacity", "qwen3.5-35b-a3b", *H100, "--json")
    rows = {row["bits"]: row for row in ran.document["rows"]}
    assert {bits: row["weights_gb"] for bits, row in rows.items()} == {16: 70.0, 8: 35.0, 4: 17.5}
    assert ran.document["free_share"] == 0.15
    assert rows[16]["per_gpu_gb"] == pytest.approx(68.0)  # 80 x 0.85
    assert rows[16]["gpu_count"] == 2
