"""Ask GenZ: rooflines of operators at one efficiency, 1.0 where nothing is said."""

import shutil
import sys
import warnings

from asking import Question, figures, serve
from GenZ import decode_moddeling, prefill_moddeling
from GenZ.Models.default_models import ModelConfig
from GenZ.Models.get_language_model import DATA_PATH
from Systems.system_configs import system_configs

# Its systems by the names of our catalogue; others are described by our catalogue.
SYSTEMS = {
    "A100 40GB SXM": "A100_40GB_GPU",
    "A100 80GB SXM": "A100_80GB_GPU",
    "H100 SXM": "H100_GPU",
    "Instinct MI300X": "MI300X",
    "Gaudi 3 128GB": "Gaudi3",
}
EFFICIENCY = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0


def system_of(question: Question) -> str | dict:
    """Return its own record of a device, else one of ours in its form."""
    if question["gpu"] in SYSTEMS:
        return SYSTEMS[question["gpu"]]
    gpu = question["device"]
    return {
        "Flops": gpu["tflops"],
        "Memory_size": gpu["memory_gb"],
        "Memory_BW": gpu["bandwidth_gb_per_s"],
        "ICN": gpu["link_gb_per_s"],
        "real_values": True,
    }


def model_of(model: dict) -> ModelConfig:
    """Return a model of full attention in its form."""
    if not model["is_plain"] or not model["ffn"]:
        raise LookupError("no form for the attention or the layers")
    experts = {}
    if model["experts"]:
        experts = {
            "num_experts": model["experts"],
            "expert_top_k": model["top_k"],
            "moe_intermediate_size": model["expert_ffn"],
            "n_shared_experts": model["shared_experts"],
            "shared_expert_intermediate_size": model["shared_ffn"],
        }
    return ModelConfig(
        model=model["id"],
        vocab_size=model["vocab"],
        hidden_size=model["hidden"],
        intermediate_size=model["ffn"],
        num_ffi=2,
        num_decoder_layers=model["layers"],
        num_attention_heads=model["heads"],
        num_key_value_heads=model["kv_heads"],
        head_dim=model["head_dim"],
        **experts,
    )


def ask(question: Question) -> dict[str, float]:
    """Return its estimates; it has no scheduler, so a prompt waits for nothing."""
    for system in system_configs.values():
        system.setdefault("ICN_LL", 1)
    bits = {16: "bf16", 8: "int8" if question["compute"] != "fp8" else "fp8", 4: "int4"}[question["bits"]]
    ranks = question["tensor_ranks"]
    common = {
        "model": model_of(question["model"]),
        "system_name": system_of(question),
        "system_eff": EFFICIENCY,
        "bits": bits,
        "tensor_parallel": 1 if question["is_layer_split"] else ranks,
        "pipeline_parallel": ranks if question["is_layer_split"] else 1,
        "model_offload": True,
    }
    given = max(1, round(question["input_tokens"]))
    batch = max(1, round(question["batch"]))

    def prompts_s(count: int) -> float:
        return prefill_moddeling(batch_size=count, input_tokens=given, **common)["Latency"] / 1e3

    def step_s() -> float:
        tokens = max(1, round(question["context_tokens"]))
        return decode_moddeling(batch_size=batch, Bb=1, input_tokens=tokens, **common)["Latency"] / 1e3

    return figures(question, prompt_s=lambda: prompts_s(1), prompts_s=lambda: prompts_s(batch), step_s=step_s)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(ask)
    shutil.rmtree(DATA_PATH, ignore_errors=True)  # its notes of every call
