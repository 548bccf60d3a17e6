"""Every model: plausible, found by all its names, and the same as the facts it was carried over from."""

import json
from collections import Counter

import pytest

from planner.catalogue import build, lookup_key, to_table
from planner.catalogues.models import AttentionKind, Model, aliases_of, all_models, find_model, model_aliases
from planner.catalogues.quants import all_quants
from planner.errors import UnknownName

# Layers with a feed-forward block and no mixer: Nemotron 3 Ultra, Super and Nano (experts) and 253B (pruned).
LAYERS_WITHOUT_MIXER = {
    "nemotron-3-ultra-550b-a55b": 48,
    "nemotron-3-super-120b-a12b": 40,
    "nemotron-3-nano-30b-a3b": 23,
    "llama-3.1-nemotron-ultra-253b": 98,
}
# Two feed-forward matrices in place of three (no gate), or embeddings in every layer (Gemma E).
NOT_RECOUNTED = {
    "phi-1.5",
    "phi-2",
    "stablelm-base-alpha-3b",
    "falcon-40b",
    "gemma-4-e4b-it",
    "gemma-4-e2b-it",
}
PLAIN_KINDS = {AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED}
MODELS = list(all_models().values())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_every_model_round_trips_and_is_plausible(model):
    assert build(Model, to_table(model)) == model
    assert 1e8 < model.main_params < 3e12
    assert model.active_params <= model.main_params
    assert model.active_params_with_embedding >= model.active_params
    assert 0.5 < model.published_total_params / model.main_params < 1.5 or model.ngram_table_params
    assert 10 <= model.num_layers <= 200
    assert 256 <= model.hidden_size <= 20480
    assert 2048 <= model.context_tokens <= 11_000_000
    assert model.evidence in {"config", "model-card", "listing"}
    assert model.modality[0] == "text"
    assert model.native_expert_bits is None or 4 <= model.native_expert_bits <= 16


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_layer_kinds_add_up_to_the_layers(model):
    with_mixer = sum(group.layers for group in model.attention_groups)
    assert with_mixer + LAYERS_WITHOUT_MIXER.get(model.id, 0) == model.num_layers


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_every_attention_group_has_the_fields_that_its_cache_needs(model):
    needed = {
        AttentionKind.FULL: ("kv_heads", "head_dim", "v_head_dim"),
        AttentionKind.SLIDING: ("kv_heads", "head_dim", "v_head_dim", "window"),
        AttentionKind.CHUNKED: ("kv_heads", "head_dim", "v_head_dim", "window"),
        AttentionKind.MLA: ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"),
        AttentionKind.COMPRESSED_LATENT: ("head_dim", "compress_ratio", "window"),
        AttentionKind.GATED_DELTA: (
            "key_heads",
            "value_heads",
            "key_head_dim",
            "value_head_dim",
            "conv_kernel",
        ),
        AttentionKind.KDA: ("heads", "key_head_dim", "value_head_dim", "conv_kernel"),
        AttentionKind.MAMBA1: ("inner_dim", "state_size", "conv_kernel"),
        AttentionKind.MAMBA2: ("heads", "head_dim", "state_size", "groups", "conv_kernel"),
        AttentionKind.SHORT_CONV: ("channels", "conv_kernel"),
    }
    for group in model.attention_groups:
        missing = [name for name in needed[group.kind] if getattr(group, name) is None]
        assert not missing


def recounted(model):
    """Count the parameters of a model with ordinary attention from its shape."""
    hidden = model.hidden_size
    count = model.vocab_size * hidden * (1 if model.tied_embeddings else 2)
    for group in model.attention_groups:
        query, key = group.heads * group.head_dim, group.kv_heads * group.head_dim
        value, out = group.kv_heads * group.v_head_dim, group.heads * group.v_head_dim
        gate = (group.heads if group.has_head_gate else query) if group.has_output_gate else 0
        bias = query + key + value if group.has_qkv_bias else 0
        kept = 0 if group.shares_k_and_v_projection else value
        count += group.layers * (hidden * (query + gate + key + kept + out) + bias)
    if model.moe:
        moe = model.moe
        width = moe.routed_experts * moe.moe_intermediate_size + (moe.shared_intermediate_size or 0)
        count += moe.moe_layers * hidden * (moe.ffn_matrices * width + moe.routed_experts)
        count += moe.dense_layers * 3 * hidden * (moe.dense_intermediate_size or 0)
    elif model.mlp_widths:
        count += sum(3 * hidden * block.width * block.blocks for block in model.mlp_widths)
    else:
        count += model.num_layers * 3 * hidden * model.intermediate_size
    return count + (model.vision_params or 0) + (model.audio_params or 0)


RECOUNTABLE = [
    model
    for model in MODELS
    if {group.kind for group in model.attention_groups} <= PLAIN_KINDS and model.id not in NOT_RECOUNTED
]


def test_most_models_can_be_recounted():
    assert len(RECOUNTABLE) > 100


@pytest.mark.parametrize("model", RECOUNTABLE, ids=lambda model: model.id)
def test_parameters_counted_from_the_shape_agree(model):
    """Norms and small vectors are left out; a misread field shows as percents."""
    assert recounted(model) == pytest.approx(model.main_params, rel=0.002)


def test_llama_8b_recounts_to_the_parameter():
    model = find_model("llama-3.1-8b-instruct").model
    # 2 x 128,256 x 4,096 + 32 x (2 x 4,096^2 + 2 x 4,096 x 1,024 + 3 x 4,096 x 14,336), and 65 norms.
    assert recounted(model) == 8_029_995_008
    assert recounted(model) + 65 * 4096 == model.main_params == 8_030_261_248


@pytest.mark.parametrize(
    ("name", "model_id", "quant"),
    [
        ("qwen3-coder-480b-a35b", "qwen3-coder-480b-a35b", None),
        ("QWEN3 Coder_480B A35B", "qwen3-coder-480b-a35b", None),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder-480b-a35b", None),
        ("Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder-480b-a35b", None),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "qwen3-coder-480b-a35b", "FP8"),
        ("unsloth/Qwen3.8-Flash-Next-GGUF", "qwen3.8-flash-next", None),
        ("unsloth/Qwen3.8-Flash-Next-GGUF:Q4_K_M", "qwen3.8-flash-next", "Q4_K_M"),
        ("unsloth/Qwen3.8-Flash-Next-GGUF:q8_0", "qwen3.8-flash-next", "Q8_0"),
        ("nvidia/Qwen3.8-Flash-Next-NVFP4", "qwen3.8-flash-next", "NVFP4"),
        ("llama3.3:70b", "llama-3.3-70b-instruct", None),
        (" gpt-oss:20b ", "gpt-oss-20b", None),
    ],
)
def test_a_model_is_found_by_its_names(name, model_id, quant):
    match = find_model(name)
    assert (match.model.id, match.quant) == (model_id, quant)


def test_every_name_leads_to_its_model():
    for model in MODELS:
        for name in (model.id, model.name, model.hf_repo):
            assert find_model(name).model == model
    for alias in model_aliases().values():
        match = find_model(alias.name)
        assert (match.model.id, match.quant) == (alias.model, alias.quant)
        assert match.quant is None or match.quant in all_quants()


def test_no_name_belongs_to_two_models_in_any_spelling():
    owner = {}
    for model in MODELS:
        own = {model.id, model.name, model.hf_repo} | {alias.name for alias in aliases_of(model.id)}
        for key in {lookup_key(name) for name in own}:
            assert owner.setdefault(key, model.id) == model.id


def test_an_unknown_model_is_an_error_with_close_matches():
    with pytest.raises(UnknownName, match="unknown model 'qwen3-coder'") as caught:
        find_model("qwen3-coder")
    assert "qwen3-coder-480b-a35b" in caught.value.matches


def test_an_unknown_weight_format_behind_a_known_model_is_an_error_about_the_format():
    with pytest.raises(UnknownName, match="unknown quant 'Q4_K_Z'"):
        find_model("unsloth/Qwen3.8-Flash-Next-GGUF:Q4_K_Z")


def test_a_name_with_a_colon_that_no_model_has_is_an_unknown_model():
    with pytest.raises(UnknownName, match="unknown model 'nobody/nothing:Q4_K_M'"):
        find_model("nobody/nothing:Q4_K_M")


def test_a_model_without_parameters_cannot_be_built():
    with pytest.raises(ValueError, match="active_params must be above 0"):
        build(Model, {**to_table(MODELS[0]), "active_params": 0})


@pytest.fixture(scope="module")
def facts(shared):
    return json.loads((shared / "data" / "models.json").read_text(encoding="utf-8"))


def test_all_models_of_the_facts_are_carried(facts):
    assert [entry["id"] for entry in facts] == [model.id for model in MODELS][: len(facts)]


# The facts leave out of its active count what mixes its widened activations, 633,206,656 parameters.
CORRECTED = {
    ("qwen3.8-flash-next", name) for name in ("active_params", "active_params_with_embedding", "notes")
}


def test_plain_fields_are_the_facts(facts):
    renamed = {"evidence": "sources", "confidence": "evidence"}
    nested = {"aliases", "attention_groups", "layer_kinds", "latent_attention", "extra", "moe", "vision"}
    for entry in facts:
        model = all_models()[entry["id"]]
        for name, value in entry.items():
            if name in nested or name == "active_params_basis" or (model.id, name) in CORRECTED:
                continue
            ours = getattr(model, renamed.get(name, name))
            assert (list(ours) if isinstance(ours, tuple) else ours) == value, (model.id, name)


def test_extra_facts_are_carried(facts):
    for entry in facts:
        model = all_models()[entry["id"]]
        extra = dict(entry["extra"] or {})
        widths = {str(block.width): block.blocks for block in model.mlp_widths}
        # Of Gemma 4 E2B the widths stand in the notes of the facts only.
        assert widths == extra.pop("mlp_width_counts", widths if model.id == "gemma-4-e2b-it" else {})
        assert model.hyper_connection_rank == extra.pop("hc_lowrank", None)
        assert model.attention_free_layers == extra.pop("attention_free_layers", 0)
        assert all(getattr(model, name) == value for name, value in extra.items())
        latent, vision = entry["latent_attention"] or {}, entry["vision"] or {}
        for name, value in latent.items():
            ours = getattr(model.latent_attention, name)
            assert (list(ours) if isinstance(ours, tuple) else ours) == value
        assert all(getattr(model.vision, name) == value for name, value in vision.items())


def test_attention_groups_are_the_facts(facts):
    renamed = {
        "chunk_size": "window",
        "output_gate": "has_output_gate",
        "head_gate": "has_head_gate",
        "full_rank_output_gate": "has_full_rank_output_gate",
        "qkv_bias": "has_qkv_bias",
        "sinks": "has_sinks",
        "k_proj_equals_v_proj": "shares_k_and_v_projection",
    }
    for entry in facts:
        model = all_models()[entry["id"]]
        kinds = Counter()
        for theirs, ours in zip(entry["attention_groups"], model.attention_groups, strict=True):
            kinds[str(ours.kind)] += ours.layers
            for name, value in theirs.items():
                if name != "sparse_index":
                    assert getattr(ours, renamed.get(name, name)) == value, (model.id, name)
            assert (ours.sparse_index is None) == ("sparse_index" not in theirs)
            if theirs.get("head_gate"):
                assert ours.has_output_gate
        assert kinds == entry["layer_kinds"]


def test_sparse_indexes_keep_their_key_and_budget(facts):
    budgets = {}
    for entry in facts:
        for theirs, ours in zip(
            entry["attention_groups"], all_models()[entry["id"]].attention_groups, strict=True
        ):
            if ours.sparse_index:
                index = ours.sparse_index
                assert index.kind == theirs["sparse_index"]["type"]
                assert index.head_dim == theirs["sparse_index"]["head_dim"]
                assert index.heads == theirs["sparse_index"]["heads"]
                budgets[entry["id"]] = index.budget_tokens
    # MiniMax chooses 16 blocks of 128 tokens, the others say 2,048 tokens directly.
    assert set(budgets.values()) == {2048}
    assert len(budgets) == 7
    assert find_model("minimax-m3.1-flash").model.attention_groups[0].sparse_index.block_tokens == 128


def test_experts_are_the_facts(facts):
    renamed = {
        "n_group": "expert_groups",
        "topk_group": "groups_per_token",
        "expert_bias": "has_expert_bias",
        "dense_mlp_in_every_layer": "has_dense_mlp_in_every_layer",
    }
    for entry in facts:
        model = all_models()[entry["id"]]
        assert (model.moe is None) == (entry["moe"] is None)
        for name, value in (entry["moe"] or {}).items():
            ours = getattr(model.moe, renamed.get(name, name))
            assert (ours or 0) == (value or 0), (model.id, name)


def test_all_aliases_of_the_facts_are_carried(facts):
    for entry in facts:
        for alias in entry["aliases"]:
            ours = model_aliases()[alias["name"]]
            assert (ours.model, ours.label, ours.kind, ours.seen_in, ours.max_position_embeddings) == (
                entry["id"],
                alias["quant"],
                alias["kind"],
                alias["seen_in"],
                alias.get("max_position_embeddings"),
            )
            assert (ours.quant is None) == (alias["quant"] in (None, "GGUF"))
