"""Ask aiconfigurator: its tables of kernels where it has them, its own estimates between them (HYBRID)."""

import json
import logging
import tempfile
import warnings
from pathlib import Path

import aiconfigurator_core
from aiconfigurator.cli.api import EstimateResult, cli_estimate
from asking import Question, figures, serve

# Its systems by the names of our catalogue.
SYSTEMS = {
    "A100 80GB SXM": "a100_sxm",
    "A100 80GB PCIe": "a100_pcie",
    "B200": "b200_sxm",
    "B300": "b300_sxm",
    "GB200": "gb200",
    "H100 SXM": "h100_sxm",
    "H200 SXM": "h200_sxm",
    "L40S": "l40s",
    "RTX PRO 6000 Blackwell Server": "rtx_pro_6000_server",
}
ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
# Configurations that it carries, by our names; those of one shape share one.
MODELS = {
    "llama-3.1-8b-instruct": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-70b-instruct": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.3-70b-instruct": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-405b-instruct": "meta-llama/Meta-Llama-3.1-405B",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "llama-4-maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "mixtral-8x7b-instruct": "mistralai/Mixtral-8x7B-v0.1",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen3-235b-a22b-2507": "Qwen/Qwen3-235B-A22B",
    "qwen3-coder-480b-a35b": "Qwen/Qwen3-Coder-480B-A35B-Instruct",
    "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5",
    "kimi-k2-instruct": "moonshotai/Kimi-K2-Instruct",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "deepseek-r1-0528": "deepseek-ai/DeepSeek-R1",
    "deepseek-v3-0324": "deepseek-ai/DeepSeek-V3",
    "deepseek-v3.1": "deepseek-ai/DeepSeek-V3",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "glm-5": "zai-org/GLM-5",
    "gemma-4-26b-a4b-it": "google/gemma-4-26B-A4B",
    "nemotron-3-nano-30b-a3b": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "nemotron-3-super-120b-a12b": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
}
# Its modes of matrix products by our formats; the others it infers from the configuration.
MODES = {
    "FP16": "bfloat16",
    "BF16": "bfloat16",
    "FP8": "fp8",
    "NVFP4": "nvfp4",
    "GPTQ-4": "int4_wo",
    "AWQ": "int4_wo",
    "INT8": "int8_wo",
}
# Architectures that it reads and whose configuration is no more than the numbers of a plain model.
PLAIN = {"LlamaForCausalLM": "LlamaForCausalLM", "MistralForCausalLM": "LlamaForCausalLM"}
PLAIN["Qwen2ForCausalLM"] = "Qwen2ForCausalLM"
HELD = Path(aiconfigurator_core.__file__).parent / "model_configs"
# Where all requests are queued, a batch that it finds too large is halved so often at most.
HALVINGS = 3
WRITTEN = Path(tempfile.mkdtemp(prefix="peers-"))


def path_of(question: Question) -> str:
    """Return the path of a model: its own configuration, or one written from our catalogue."""
    model = question["model"]
    folder = WRITTEN / model["id"]
    if not folder.exists():
        name = MODELS.get(model["id"])
        held = HELD / f"{name.replace('/', '--')}_config.json" if name else None
        if held is not None and held.exists():
            text = held.read_text(encoding="utf-8")
        elif model["architecture"] in PLAIN:
            text = json.dumps(config_of(model))
        else:
            raise LookupError("no configuration of the model in the package")
        folder.mkdir()
        (folder / "config.json").write_text(text, encoding="utf-8")
        hints = HELD / f"{name.replace('/', '--')}_hf_quant_config.json" if name else None
        if hints is not None and hints.exists():
            (folder / "hf_quant_config.json").write_bytes(hints.read_bytes())
    return str(folder)


def config_of(model: dict) -> dict:
    """Return a plain model as its publisher would write it."""
    return {
        "architectures": [PLAIN[model["architecture"]]],
        "model_type": "qwen2" if model["architecture"].startswith("Qwen2") else "llama",
        "num_hidden_layers": model["layers"],
        "hidden_size": model["hidden"],
        "intermediate_size": model["ffn"],
        "num_attention_heads": model["heads"],
        "num_key_value_heads": model["kv_heads"],
        "head_dim": model["head_dim"],
        "vocab_size": model["vocab"],
        "max_position_embeddings": 131072,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    }


def ask(question: Question) -> dict[str, float]:
    """Return its estimates; a batch that starts together is static, others are scheduled."""
    if question["gpu"] not in SYSTEMS or question["engine"] not in ENGINES:
        raise LookupError("no such system or engine")
    mode = MODES.get(question["quant"])
    if question["quant_name"] == "FP8-block":
        mode = "fp8_block"
    attention = question["attention_ranks"]
    settings = {
        "backend_name": ENGINES[question["engine"]],
        "database_mode": "HYBRID",
        "isl": max(1, round(question["input_tokens"])),
        "osl": max(2, round(question["output_tokens"])),
        "batch_size": max(1, round(question["batch"] / attention)),
        "tp_size": question["tensor_ranks"] // attention,
        "attention_dp_size": attention,
        "gemm_quant_mode": mode,
    }
    if question["model"]["experts"]:
        settings["moe_ep_size"] = question["expert_ranks"]
        settings["moe_tp_size"] = question["tensor_ranks"] // question["expert_ranks"]
        if question["quant"] in ("FP16", "BF16", "NVFP4", "FP8"):
            settings["moe_quant_mode"] = mode
    path, system = path_of(question), SYSTEMS[question["gpu"]]
    if question["starts_together"]:
        found = cli_estimate(path, system, mode="static", **settings)
        prompts_s, step_s = found.ttft / 1e3, found.tpot / 1e3
        return figures(
            question, prompt_s=lambda: prompts_s, prompts_s=lambda: prompts_s, step_s=lambda: step_s
        )
    found = scheduled(path, system, settings, is_queued=question["is_queued"])
    output = found.raw["tokens/s"]
    given, written = question["input_tokens"], question["output_tokens"]
    return {
        "ttft_ms": found.ttft,
        "tpot_ms": found.tpot,
        "agg_output_tps": output,
        "agg_total_tps": output * (given + written) / written,
    }


def scheduled(path: str, system: str, settings: dict, *, is_queued: bool) -> EstimateResult:
    """Return the estimate of a server; where all requests wait, of the batch that it holds for possible."""
    for _ in range(HALVINGS):
        try:
            return cli_estimate(path, system, **settings)
        except RuntimeError as error:
            if not is_queued or "OOM" not in str(error):
                raise
            settings = {**settings, "batch_size": max(1, settings["batch_size"] // 2)}
    return cli_estimate(path, system, **settings)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    serve(ask)
