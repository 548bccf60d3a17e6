"""GGUF headers: exact bytes of true files, one line for every lie."""

import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from planner.catalogues.quants import find_quant
from planner.errors import UnknownArchitecture, UnreadableModel
from planner.gguf import read_gguf
from planner.memory import weights
from planner.reading.gguf import HeaderTooShort, parse_gguf
from tests.planner.reading.ggufs import (
    header,
    llama_8b_ends,
    llama_8b_fields,
    llama_8b_tensors,
    prefixed,
    read,
)
from tests.planner.reading.published import growing, kinds, windowed
from tests.planner.reading.tensorfiles import gguf_file_bytes, gguf_start

LLAMA = {**llama_8b_ends(), **llama_8b_tensors()}
# Bytes of a block of 256 weights: Q4_K 144, Q6_K 210.
NARROW, WIDE = 144 / 256, 210 / 256
QKO = 4096 * (4096 + 1024 + 4096)
GATE_UP = 2 * 4096 * 14336
MIXED = 4096 * 1024 + 14336 * 4096
NORMS = 2 * 4096 * 4
EVEN_LAYER = int((QKO + GATE_UP + MIXED) * NARROW) + NORMS
ODD_LAYER = int((QKO + GATE_UP) * NARROW + MIXED * WIDE) + NORMS
EMBEDDING, HEAD = int(4096 * 128256 * NARROW), int(4096 * 128256 * WIDE)
LLAMA_BYTES = 16 * (EVEN_LAYER + ODD_LAYER) + EMBEDDING + HEAD + 4096 * 4 + 64 * 4


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_file_is_read_to_the_byte(version, order):
    reading = read_gguf([header(llama_8b_fields(), LLAMA, version=version, order=order)])
    model = reading.model
    assert (reading.quant, reading.is_gguf, model.name) == ("Q4_K_M", True, "Llama 3.1 8B")
    assert model.main_params == 8_030_261_248 + 64  # 64 factors of the rotation are stored as a tensor
    assert model.main_params_basis == "exact: elements of its tensors"
    assert model.checkpoint_bytes == LLAMA_BYTES
    assert model.stored.layer_bytes == (EVEN_LAYER, ODD_LAYER) * 16
    assert (model.max_position_embeddings, model.vocab_size, model.tied_embeddings) == (131072, 128256, False)
    assert kinds(reading) == {"full": 32}
    assert growing(reading) == 65_536
    assert reading.notes == ()


def test_the_weights_of_a_file_are_its_bytes_and_its_embedding_is_read_row_by_row():
    model = read(llama_8b_fields(), LLAMA).model
    held = weights(model, find_quant("Q4_K_M"))
    assert held.is_official
    assert held.total_bytes == LLAMA_BYTES
    assert held.dense_read_bytes == LLAMA_BYTES - EMBEDDING
    assert held.routed_bytes == 0
    # In another format the elements count, and the file's bytes no more.
    assert weights(model, find_quant("BF16")).total_bytes == pytest.approx(8_030_261_312 * 2, rel=1e-6)


def test_one_matrix_in_and_out_is_read_for_every_token():
    tied = {name: value for name, value in LLAMA.items() if name != "output.weight"}
    model = read(llama_8b_fields(), tied).model
    assert model.tied_embeddings
    assert weights(model, find_quant("Q4_K_M")).dense_read_bytes == LLAMA_BYTES - HEAD


def test_a_format_that_is_no_entry_of_the_catalogue_is_named():
    reading = read(llama_8b_fields(**{"general.file_type": 36}), LLAMA)
    assert reading.quant == "Q4_K_M"
    assert reading.notes == (
        "its format TQ1_0 is not in the catalogue: Q4_K_M is the nearest; sizes are those of its tensors",
    )
    assert weights(reading.model, find_quant("Q4_K_M")).total_bytes == LLAMA_BYTES


def test_a_file_that_calls_itself_what_it_is_not_is_taken_by_its_bits():
    wide = {**llama_8b_ends(matrix="Q8_0", wide="Q8_0"), **llama_8b_tensors(matrix="Q8_0", wide="Q8_0")}
    reading = read(llama_8b_fields(), wide)
    assert reading.quant == "Q8_0"
    (note,) = reading.notes
    assert note.startswith(
        "it calls itself Q4_K_M, and its tensors have 8.50 bits a weight: Q8_0 is the nearest"
    )


def test_parts_of_a_model_are_put_together():
    first = {**llama_8b_ends(), **llama_8b_tensors(range(16))}
    second = llama_8b_tensors(range(16, 32))
    split = {"split.count": 2, "split.tensors.count": len(first) + len(second)}
    headers = [header({**llama_8b_fields(), **split, "split.no": 0}, first), header({"split.no": 1}, second)]
    whole = read_gguf(headers).model
    assert (whole.main_params, whole.checkpoint_bytes) == (8_030_261_248 + 64, LLAMA_BYTES)
    for wrong, why in (
        (headers[:1], "1 of its 2 parts are there"),
        ([headers[0], headers[0]], "hold the same tensors twice"),
        ([headers[0], header({}, {"x": ("F32", (4,))})], "of 292 tensors"),
    ):
        with pytest.raises(UnreadableModel, match=why):
            read_gguf(wrong)


def test_experts_are_counted_from_their_tensors():
    """Qwen3 30B-A3B, of which two layers are enough."""
    shape = {
        "block_count": 2,
        "context_length": 40960,
        "embedding_length": 2048,
        "feed_forward_length": 6144,
        "expert_feed_forward_length": 768,
        "expert_count": 128,
        "expert_used_count": 8,
        "attention.head_count": 32,
        "attention.head_count_kv": 4,
        "attention.key_length": 128,
        "attention.value_length": 128,
    }
    tensors = {"token_embd.weight": ("Q4_K", (2048, 151936)), "output.weight": ("Q6_K", (2048, 151936))}
    for layer in range(2):
        tensors |= {
            f"blk.{layer}.attn_q.weight": ("Q4_K", (2048, 4096)),
            f"blk.{layer}.attn_k.weight": ("Q4_K", (2048, 512)),
            f"blk.{layer}.attn_v.weight": ("Q6_K", (2048, 512)),
            f"blk.{layer}.attn_output.weight": ("Q4_K", (4096, 2048)),
            f"blk.{layer}.ffn_gate_inp.weight": ("F32", (2048, 128)),
            f"blk.{layer}.ffn_gate_exps.weight": ("Q4_K", (2048, 768, 128)),
            f"blk.{layer}.ffn_up_exps.weight": ("Q4_K", (2048, 768, 128)),
            f"blk.{layer}.ffn_down_exps.weight": ("Q6_K", (768, 2048, 128)),
        }
    model = read(prefixed("qwen3moe", shape, file_type=15), tensors).model
    assert (model.moe.routed_experts, model.moe.experts_per_token, model.moe.moe_intermediate_size) == (
        128,
        8,
        768,
    )
    routed = int(2 * 128 * 2048 * 768 * (2 * NARROW + WIDE))
    held = weights(model, find_quant("Q4_K_M"))
    assert held.routed_bytes == model.stored.routed_bytes == routed
    assert model.native_expert_bits == pytest.approx(8 * (2 * NARROW + WIDE) / 3)
    embedding = int(2048 * 151936 * NARROW)
    assert held.dense_read_bytes == model.checkpoint_bytes - routed - embedding
    # 8 of 128 experts, the router, attention and the head.
    attention = 2048 * (4096 + 512 + 512 + 4096)
    assert model.active_params == pytest.approx(
        2 * (8 * 3 * 2048 * 768 + 2048 * 128 + attention) + 2048 * 151936, rel=1e-3
    )


def test_draft_layers_lie_in_the_file_and_are_not_loaded():
    fields = llama_8b_fields(**{"llama.block_count": 33, "llama.nextn_predict_layers": 1})
    draft = {
        "blk.32.ffn_up.weight": ("Q4_K", (4096, 14336)),
        "blk.32.nextn.eh_proj.weight": ("Q4_K", (8192, 4096)),
    }
    model = read(fields, {**LLAMA, **draft}).model
    assert (model.num_layers, model.mtp_layers, model.main_params) == (32, 1, 8_030_261_312)
    assert model.checkpoint_bytes - model.stored.served_bytes == int((4096 * 14336 + 8192 * 4096) * NARROW)


def test_hybrids_are_told_by_the_tensors_of_their_layers():
    """The shape of Qwen3-Next, of which four layers are enough."""
    shape = {
        "block_count": 4,
        "embedding_length": 2048,
        "feed_forward_length": 5120,
        "attention.head_count": 16,
        "attention.head_count_kv": 2,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "ssm.conv_kernel": 4,
        "ssm.group_count": 16,
        "ssm.inner_size": 4096,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 32,
    }
    tensors = {"token_embd.weight": ("Q8_0", (2048, 1000))}
    for layer in range(4):
        mixer = "attn_q" if layer == 3 else "ssm_out"
        tensors |= {
            f"blk.{layer}.{mixer}.weight": ("Q8_0", (2048, 8192)),
            f"blk.{layer}.ffn_gate.weight": ("Q8_0", (2048, 5120)),
            f"blk.{layer}.ffn_up.weight": ("Q8_0", (2048, 5120)),
        }
    reading = read(prefixed("qwen3next", shape), tensors)
    assert kinds(reading) == {"gated_delta": 3, "full": 1}
    delta = reading.model.attention_groups[0]
    assert (delta.key_heads, delta.value_heads, delta.key_head_dim, delta.value_head_dim) == (
        16,
        32,
        128,
        128,
    )
    assert growing(reading) == 2 * 2 * 256


def test_latents_and_windows_of_a_header_are_those_of_a_configuration():
    latent = {
        "block_count": 1,
        "embedding_length": 512,
        "feed_forward_length": 1024,
        "attention.head_count": 128,
        "attention.head_count_kv": 1,
        "attention.key_length": 576,
        "attention.value_length": 512,
        "attention.key_length_mla": 192,
        "attention.value_length_mla": 128,
        "attention.kv_lora_rank": 512,
        "attention.q_lora_rank": 1536,
        "rope.dimension_count": 64,
    }
    tensors = {
        "token_embd.weight": ("F16", (512, 100)),
        "blk.0.attn_kv_b.weight": ("F16", (512, 512)),
        "blk.0.ffn_gate.weight": ("F16", (512, 1024)),
    }
    reading = read(prefixed("deepseek2", latent), tensors)
    assert kinds(reading) == {"mla": 1}
    assert growing(reading) == 576
    sliding = {**latent, "block_count": 2, "attention.sliding_window": 128, "context_length": 4096}
    fields = {name: value for name, value in sliding.items() if "lora" not in name and "mla" not in name}
    fields |= {
        "attention.head_count": 8,
        "attention.head_count_kv": 8,
        "attention.key_length": 64,
        "attention.value_length": 64,
    }
    two = {
        **tensors,
        **{name.replace("blk.0", "blk.1"): value for name, value in tensors.items() if "blk" in name},
    }
    gpt = read(prefixed("gpt-oss", fields), two)
    assert kinds(gpt) == {"sliding": 1, "full": 1}
    assert windowed(gpt) == {128.0: 2 * 8 * 64}


@pytest.mark.parametrize(
    ("fields", "tensors", "why"),
    [
        ({}, {"x": ("F32", (4,))}, "no general.architecture"),
        ({"general.architecture": "clip"}, {"v.x": ("F32", (4,))}, "encoder of images alone"),
        (prefixed("llama", {}), LLAMA, "block_count is None"),
        (llama_8b_fields(**{"llama.block_count": 0}), LLAMA, "block_count is 0"),
        (llama_8b_fields(**{"llama.block_count": 2**31}), LLAMA, "1 to 4096 layers"),
        (llama_8b_fields(**{"llama.nextn_predict_layers": 40}), LLAMA, "block_count is 32"),
        (
            llama_8b_fields(**{"llama.attention.head_count_kv": 7}),
            LLAMA,
            "a divisor of the 32 attention heads",
        ),
        (llama_8b_fields(**{"llama.embedding_length": "4096"}), LLAMA, "hidden_size is '4096'"),
        (llama_8b_fields(**{"llama.expert_count": 8}), LLAMA, "of an older form"),
        (llama_8b_fields(**{"split.count": 70000}), LLAMA, r"split\.count is 70000"),
        (llama_8b_fields(**{"general.alignment": 3}), LLAMA, "power of 2"),
    ],
)
def test_a_header_that_cannot_be_is_refused_in_one_line(fields, tensors, why):
    with pytest.raises(UnreadableModel, match=why) as caught:
        read(fields, tensors)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("model.gguf: ")


def test_a_header_with_fewer_or_more_blocks_than_its_tensors_is_refused():
    with pytest.raises(UnreadableModel, match="block_count is 8, and its tensors go up to block 8"):
        read(llama_8b_fields(**{"llama.block_count": 8}), LLAMA)
    without = {name: tensor for name, tensor in LLAMA.items() if not name.startswith("blk.7.")}
    with pytest.raises(UnreadableModel, match="tensors are missing: none of block 7, block_count is 32"):
        read(llama_8b_fields(), without)
    no_attention = {name: tensor for name, tensor in LLAMA.items() if not name.startswith("blk.7.attn_")}
    with pytest.raises(UnreadableModel, match="block 7 has no tensors of attention: they are missing, or"):
        read(llama_8b_fields(), no_attention)
    with pytest.raises(UnreadableModel, match=r"attention\.key_length is 0"):
        read(llama_8b_fields(**{"llama.attention.key_length": 0}), LLAMA)


def test_an_architecture_that_keeps_something_else_is_refused_not_guessed():
    fields = {name.replace("llama.", "rwkv9."): value for name, value in llama_8b_fields().items()}
    fields |= {"general.architecture": "rwkv9", "rwkv9.wkv.head_size": 64}
    with pytest.raises(UnknownArchitecture, match="'rwkv9' is not known"):
        read(fields, LLAMA)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        (
            "attention.head_count_kv",
            1,
            "1 KV heads of 128 are 128 wide, and attn_k.weight of block 0 is 1,024",
        ),
        ("attention.head_count_kv", 32, "32 KV heads of 128 are 4,096 wide, and attn_k.weight of block 0"),
        ("attention.head_count_kv", [8] * 31 + [4], "attn_k.weight of block 31 is 1,024"),
        ("attention.key_length", 64, "8 KV heads of 64 are 512 wide, and attn_k.weight of block 0 is 1,024"),
        ("attention.value_length", 64, "512 wide, and attn_v.weight of block 0 is 1,024"),
        ("embedding_length", 2048, "embedding_length is 2,048, and its embedding is 4,096 wide"),
    ],
)
def test_fields_that_its_tensors_deny_are_refused(field, value, why):
    with pytest.raises(UnreadableModel, match=why):
        read(llama_8b_fields(**{f"llama.{field}": value}), LLAMA)


START = gguf_start(llama_8b_fields(), LLAMA)
SIZE = gguf_file_bytes(START, LLAMA)


def test_a_file_cut_anywhere_in_its_header_says_where():
    for cut in (0, 3, 4, 8, 20, 24, 100, 1000, len(START) // 2, len(START) - 40):
        with pytest.raises(UnreadableModel, match=r"cut off|does not start with GGUF|claims") as caught:
            parse_gguf(START[:cut], "model.gguf")
        assert "\n" not in str(caught.value)


def test_a_file_cut_in_its_tensors_says_how_much_is_missing():
    parse_gguf(START, "model.gguf", SIZE)
    with pytest.raises(
        UnreadableModel, match=r"cut off: its tensors need [\d,]+ bytes, 1,000 more than there are"
    ):
        parse_gguf(START, "model.gguf", SIZE - 1000)


def test_a_header_that_goes_on_asks_for_more():
    with pytest.raises(HeaderTooShort, match=r"goes on behind byte 1,000"):
        parse_gguf(START[:1000], "model.gguf", SIZE)


@pytest.mark.parametrize("counts", [(2**63, 1), (1, 2**63), (2**64 - 1, 2**64 - 1), (10**9, 10), (10, 10**9)])
def test_counts_that_the_file_has_no_room_for_are_refused_before_anything_is_read(counts):
    lying = gguf_start(llama_8b_fields(), LLAMA, counts=counts)
    with pytest.raises(UnreadableModel, match="claims"):
        parse_gguf(lying, "model.gguf")


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (struct.pack("<Q", 2**62), "claims a text of"),
        (struct.pack("<Q", 2**63 + 5), "claims a text of"),
        (struct.pack("<Q", 1) + b"k" + struct.pack("<I", 99), "value type 99"),
        (struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**60), "a list of"),
        (struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 2**60), "a list of"),
        (struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 77, 1), "a list of value type 77"),
        (struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 9, "value type 9"),
        (struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<II", 4, 1), "not UTF-8"),
    ],
)
def test_lengths_that_lie_are_refused_before_anything_is_allocated(tail, why):
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + tail + b"\0" * 64
    with pytest.raises(UnreadableModel, match=why):
        parse_gguf(data, "model.gguf")


@pytest.mark.parametrize(
    ("tensor", "why"),
    [
        (struct.pack("<I", 0) + struct.pack("<IQ", 0, 0), "has 0 dimensions"),
        (
            struct.pack("<I", 5) + struct.pack("<5Q", 1, 1, 1, 1, 1) + struct.pack("<IQ", 0, 0),
            "has 5 dimensions",
        ),
        (struct.pack("<IQ", 1, 2**60) + struct.pack("<IQ", 0, 0), "cannot have the shape"),
        (struct.pack("<IQQ", 2, 2**40, 2**40) + struct.pack("<IQ", 0, 0), "cannot have the shape"),
        (struct.pack("<IQ", 1, 0) + struct.pack("<IQ", 0, 0), "cannot have the shape"),
        (struct.pack("<IQ", 1, 100) + struct.pack("<IQ", 12, 0), r"cannot have the shape \[100\] in Q4_K"),
        (struct.pack("<IQ", 1, 256) + struct.pack("<IQ", 5, 0), "a type that is not known"),
        (struct.pack("<IQ", 1, 256) + struct.pack("<IQ", 0, 7), "not aligned"),
        (struct.pack("<IQ", 1, 256) + struct.pack("<IQ", 0, 2**62), "cut off: its tensors need"),
    ],
)
def test_tensors_that_cannot_be_are_refused(tensor, why):
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"t" + tensor + b"\0" * 64
    with pytest.raises(UnreadableModel, match=why):
        parse_gguf(data, "model.gguf")


def test_fields_and_tensors_that_occur_twice_or_overlap_are_refused():
    field = struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 1)
    with pytest.raises(UnreadableModel, match="the field 'k' occurs twice"):
        parse_gguf(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + field * 2, "model.gguf")
    tensor = struct.pack("<Q", 1) + b"%c" + struct.pack("<IQ", 1, 256) + struct.pack("<IQ", 0, 0)
    two = tensor % b"a" + tensor % b"b"
    with pytest.raises(UnreadableModel, match="overlaps"):
        parse_gguf(b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + two + b"\0" * 4096, "model.gguf")
    with pytest.raises(UnreadableModel, match="the tensor 'a' occurs twice"):
        parse_gguf(b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + tensor % b"a" * 2 + b"\0" * 4096, "model.gguf")


@pytest.mark.parametrize("version", [0, 1, 4, 2**31])
def test_another_version_is_named(version):
    with pytest.raises(UnreadableModel, match=f"GGUF version {version}; versions 2 and 3"):
        parse_gguf(gguf_start({}, {}, version=version), "model.gguf")


def test_a_name_cannot_speak_to_the_terminal():
    model = read(llama_8b_fields(**{"general.name": "A\x1b[31m\nB" + "x" * 500}), LLAMA).model
    assert model.name.isprintable()
    assert len(model.name) <= 120


SMALL = {
    "token_embd.weight": ("F32", (8, 10)),
    "blk.0.attn_q.weight": ("F32", (8, 8)),
    "blk.0.ffn_up.weight": ("F32", (8, 16)),
}
SHAPE = {"block_count": 1, "embedding_length": 8, "feed_forward_length": 16, "attention.head_count": 2}
SMALL_START = gguf_start(prefixed("llama", SHAPE), SMALL)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SMALL_START) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, 2000),
)
@example([], 0)
def test_any_bytes_are_read_or_refused(changes, size):
    """A true header with bytes gone wrong, in a file of any size."""
    data = bytearray(SMALL_START)
    for place, value in changes:
        data[place] = value
    try:
        reading = read_gguf([parse_gguf(bytes(data), "model.gguf", size)])
    except UnreadableModel:
        return
    assert reading.model.main_params > 0
