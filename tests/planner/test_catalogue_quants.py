"""Every weight format: plausible, found by its names, and with the published bits."""

import pytest

from planner.catalogue import build, to_table
from planner.catalogues.models import find_model
from planner.catalogues.quants import QuantFamily, QuantFormat, all_quants, find_quant
from planner.errors import UnknownName
from planner.memory import weights
from planner.reading.ggml import ggml_types
from planner.units import GIB

REQUIRED = [
    "BF16",
    "FP16",
    "FP8",
    "Q8_0",
    "Q6_K",
    "Q5_K_M",
    "Q4_K_M",
    "IQ4_XS",
    "Q3_K_M",
    "UD-Q2_K_XL",
    "Q4_0",
    "AWQ",
    "GPTQ-4",
    "NVFP4",
    "MXFP4",
    "INT8",
]
# The share of embedding and output head: 2 x vocabulary x hidden of all parameters.
SHARE_8B = 2 * 128256 * 4096 / 8030261248  # Llama 3.1 8B: 0.1308
SHARE_480B = 2 * 151936 * 6144 / 480154875392  # Qwen3 Coder 480B-A35B: 0.0039


def test_all_promised_formats_are_there():
    assert set(REQUIRED) <= set(all_quants())


@pytest.mark.parametrize("quant", all_quants().values(), ids=lambda quant: quant.name)
def test_every_format_round_trips_and_is_plausible(quant):
    assert build(QuantFormat, to_table(quant)) == quant
    assert 1.5625 <= quant.linear_bits <= 16  # IQ1_S, the coarsest block of ggml
    assert quant.linear_bits <= quant.embedding_bits + 0.001
    assert quant.embedding_bits <= quant.tied_embedding_bits <= 16
    assert quant.compute_dtype in {"bf16", "fp8", "int8", "fp4"}
    assert quant.title
    assert quant.notes


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("BF16", 16),
        ("Q8_0", 8.5),
        ("Q6_K", 6.56),
        ("Q5_K_M", 5.6933),
        ("Q4_K_M", 4.8567),
        ("IQ4_XS", 4.2549),
        ("Q3_K_M", 3.9143),
        ("UD-Q2_K_XL", 2.7568),
    ],
)
def test_the_sizing_page_figures_are_kept_exactly(name, bits):
    assert find_quant(name).simple_bits_per_weight == bits


@pytest.mark.parametrize(
    ("name", "bits"),
    # llama.cpp tools/quantize/README.md, whole file of Llama 3.1 8B; Q3_K_M and Q4_0 counted.
    [
        ("Q8_0", 8.5008),
        ("Q6_K", 6.5633),
        ("Q5_K_M", 5.7036),
        ("Q4_K_M", 4.8944),
        ("IQ4_XS", 4.4597),
        ("Q3_K_M", 3.99),
        ("Q4_0", 4.6349),
        ("Q5_K_S", 5.5704),
        ("Q4_K_S", 4.6672),
        ("IQ4_NL", 4.6818),
        ("Q3_K_L", 4.2979),
        ("Q3_K_S", 3.6429),
        ("IQ3_M", 3.7628),
        ("IQ3_S", 3.6606),
        ("IQ3_XS", 3.4977),
        ("IQ3_XXS", 3.2548),
        ("Q2_K", 3.1593),
        ("Q2_K_S", 2.9697),
        ("IQ2_M", 2.9294),
        ("IQ2_S", 2.7403),
        ("IQ2_XS", 2.5882),
        ("IQ2_XXS", 2.3824),
        ("IQ1_M", 2.146),
        ("IQ1_S", 2.0042),
    ],
)
def test_core_and_embedding_bits_give_the_published_8b_file(name, bits):
    quant = find_quant(name)
    assert quant.bits_per_weight == bits
    whole = quant.linear_bits * (1 - SHARE_8B) + quant.embedding_bits * SHARE_8B
    assert whole == pytest.approx(bits, abs=2e-4)


def test_the_dynamic_format_gives_the_480b_file():
    quant = find_quant("UD-Q2_K_XL")
    whole = quant.linear_bits * (1 - SHARE_480B) + quant.embedding_bits * SHARE_480B
    assert whole == pytest.approx(2.7568, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("FP16", 16),
        ("FP8", 8),
        ("AWQ", 4.25),
        ("GPTQ-4", 4.25),
        ("NVFP4", 4.5),
        ("MXFP4", 4.25),
        ("INT8", 8.25),
    ],
)
def test_other_formats_keep_embeddings_at_16_bits(name, bits):
    quant = find_quant(name)
    assert quant.bits_per_weight == bits
    assert quant.linear_bits == pytest.approx(bits, abs=0.003)
    assert quant.embedding_bits == 16


def test_only_mxfp4_is_for_experts_only():
    assert [quant.name for quant in all_quants().values() if quant.experts_only] == ["MXFP4"]


def test_gguf_formats_are_of_the_gguf_family():
    gguf = [quant for quant in all_quants().values() if quant.family is QuantFamily.GGUF]
    assert len(gguf) == 25
    bits = [quant.bits_per_weight for quant in gguf]
    assert bits == sorted(bits, reverse=True)
    others = {quant.name for quant in all_quants().values()} - {quant.name for quant in gguf}
    assert not any(name.startswith(("Q", "IQ", "UD")) for name in others)


# Types that llama-quantize gives embedding and output head (llama.cpp src/llama-quant.cpp).
HEADS = {
    **dict.fromkeys(("Q5_K_M", "Q5_K_S"), ("Q5_K", "Q6_K")),
    **dict.fromkeys(("Q4_K_M", "Q4_K_S"), ("Q4_K", "Q6_K")),
    **dict.fromkeys(("Q3_K_L", "Q3_K_M", "Q3_K_S"), ("Q3_K", "Q6_K")),
    **dict.fromkeys(("IQ3_M", "IQ3_S", "IQ3_XS"), ("IQ3_S", "Q6_K")),
    **dict.fromkeys(("Q2_K", "Q2_K_S"), ("Q2_K", "Q6_K")),
    **dict.fromkeys(("IQ3_XXS", "IQ2_M", "IQ2_S"), ("IQ3_S", "Q5_K")),
    **dict.fromkeys(("IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S"), ("Q2_K", "Q5_K")),
    "IQ4_NL": ("IQ4_NL", "Q6_K"),
    "IQ4_XS": ("IQ4_XS", "Q6_K"),
    "Q4_0": ("Q4_0", "Q6_K"),
    "Q6_K": ("Q6_K", "Q6_K"),
    "Q8_0": ("Q8_0", "Q8_0"),
}


@pytest.mark.parametrize(("name", "types"), HEADS.items(), ids=list(HEADS))
def test_embeddings_and_head_have_the_bits_of_their_blocks(name, types):
    by_name = {one.name: one.bits_per_weight for one in ggml_types().values()}
    embedding, head = (by_name[one] for one in types)
    assert find_quant(name).embedding_bits == (embedding + head) / 2
    assert find_quant(name).tied_embedding_bits == head


@pytest.mark.parametrize(
    ("name", "gib", "within"),
    # Files of Llama 3 70B (github.com/XiongjieDai/GPU-Benchmarks-on-LLM-Inference): another model than the 8B
    # one whose bits the catalogue holds, with a third of its share of embeddings.
    [
        ("Q8_0", 69.83, 0.001),
        ("Q6_K", 53.91, 0.001),
        ("Q5_K_M", 46.52, 0.001),
        ("Q5_K_S", 45.32, 0.001),
        ("Q4_K_M", 39.60, 0.001),
        ("Q4_K_S", 37.58, 0.003),
        ("IQ4_NL", 37.30, 0.010),
        ("IQ4_XS", 35.30, 0.013),
        ("Q3_K_L", 34.59, 0.002),
        ("Q3_K_M", 31.91, 0.004),
        ("IQ3_M", 29.74, 0.001),
        ("IQ3_S", 28.79, 0.001),
        ("Q3_K_S", 28.79, 0.006),
        ("IQ3_XS", 27.29, 0.001),
        ("IQ3_XXS", 25.58, 0.001),
        ("Q2_K", 24.56, 0.001),
        ("Q2_K_S", 22.79, 0.003),
        ("IQ2_M", 22.46, 0.006),
        ("IQ2_S", 20.71, 0.008),
        ("IQ2_XS", 19.69, 0.009),
        ("IQ2_XXS", 17.79, 0.010),
        ("IQ1_M", 15.60, 0.013),
        ("IQ1_S", 14.29, 0.015),
    ],
)
def test_files_of_a_70b_model(name, gib, within):
    model = find_model("meta-llama/Meta-Llama-3-70B").model
    assert weights(model, find_quant(name)).total_bytes / GIB == pytest.approx(gib, rel=within)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("q4_k_m", "Q4_K_M"),
        ("Q4-K M", "Q4_K_M"),
        ("UD-Q4_K_XL", "Q4_K_M"),
        ("F16", "FP16"),
        ("fp8_e4m3", "FP8"),
        ("W4A16", "GPTQ-4"),
        ("GPTQ-Int8", "INT8"),
        ("w8a8", "INT8"),
        ("gptq", "GPTQ-4"),
    ],
)
def test_other_spellings_are_understood(spelling, name):
    assert find_quant(spelling).name == name


@pytest.mark.parametrize("name", ["4bit", "Q4_K_T", "", "Q9_0"])
def test_an_unknown_format_is_an_error_with_close_matches(name):
    with pytest.raises(UnknownName, match="unknown quant") as caught:
        find_quant(name)
    assert caught.value.kind == "quant"
    assert set(caught.value.matches) <= set(all_quants())


def test_a_typo_names_the_formats_that_may_be_meant():
    with pytest.raises(UnknownName) as caught:
        find_quant("Q4_K_N")
    assert {"Q4_K_M", "Q4_K_S"} <= set(caught.value.matches)
