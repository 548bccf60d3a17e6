"""Ask llm-analysis: closed forms at its own efficiencies."""

import logging

from asking import Question, figures, serve
from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import (
    DtypeConfig,
    GPUConfig,
    ModelConfig,
    ParallelismConfig,
    get_gpu_config_by_name,
)

# Its devices by the names of our catalogue; others are described by our catalogue.
DEVICES = {
    "A100 40GB SXM": "a100-sxm-40gb",
    "A100 80GB PCIe": "a100-pcie-80gb",
    "A100 80GB SXM": "a100-sxm-80gb",
    "A10G": "a10g-pcie-24gb",
    "H100 PCIe": "h100-pcie-80gb",
    "H100 SXM": "h100-sxm-80gb",
}


def device_of(question: Question) -> GPUConfig:
    """Return its own record of a device, else one of ours in its form."""
    if question["gpu"] in DEVICES:
        return get_gpu_config_by_name(DEVICES[question["gpu"]])
    gpu = question["device"]
    return GPUConfig(
        name=question["gpu"],
        mem_per_GPU_in_GB=gpu["memory_gb"],
        hbm_bandwidth_in_GB_per_sec=gpu["bandwidth_gb_per_s"],
        intra_node_bandwidth_in_GB_per_sec=gpu["link_gb_per_s"],
        intra_node_min_message_latency=8e-6,
        peak_fp16_TFLOPS=gpu["tflops"],
    )


def ask(question: Question) -> dict[str, float]:
    """Return its estimates; a batch starts together."""
    model = question["model"]
    if not model["is_plain"] or not model["ffn"]:
        raise LookupError("no form for the attention or the layers")
    if question["is_layer_split"] and question["gpu_count"] > 1:
        raise LookupError("no form for layers on different GPUs with one sequence")
    width = model["expert_ffn"] if model["experts"] else model["ffn"]
    config = ModelConfig(
        name=model["id"],
        num_layers=model["layers"],
        n_head=model["heads"],
        hidden_dim=model["hidden"],
        vocab_size=model["vocab"],
        num_key_value_heads=model["kv_heads"],
        ffn_embed_dim=width,
        expansion_ratio=width / model["hidden"],  # else it refuses widths that are no multiple
        moe_num_experts=max(1, model["experts"]),
        moe_top_k=max(1, model["top_k"]),
    )
    analysis = LLMAnalysis(
        config,
        device_of(question),
        DtypeConfig(
            name="asked",
            weight_bits=question["bits"],
            activation_bits=16 if question["compute"] == "bf16" else question["bits"],
        ),
        ParallelismConfig(tp_size=question["tensor_ranks"]),
    )

    def run(batch: int) -> dict[str, float]:
        return analysis.inference(
            batch_size_per_gpu=batch,
            seq_len=max(1, round(question["input_tokens"])),
            num_tokens_to_generate=max(1, round(question["output_tokens"])),
            kv_cache_dtype_bytes=2,
        )

    batch = max(1, round(question["batch"]))
    return figures(
        question,
        prompt_s=lambda: run(1)["prefill_latency"],
        prompts_s=lambda: run(batch)["prefill_latency"],
        step_s=lambda: run(batch)["decode_latency"],
    )


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve(ask)
