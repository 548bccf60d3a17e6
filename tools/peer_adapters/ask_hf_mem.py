"""Ask hf-mem for the size of a cache, by its formula for safetensors checkpoints."""

from asking import Question, serve
from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size


def ask(question: Question) -> dict[str, float]:
    """Return the cache of one sequence in GiB; 8-bit caches are its 8-bit floats."""
    model = question["model"]
    config = {
        "num_hidden_layers": model["layers"],
        "num_attention_heads": model["heads"],
        "num_key_value_heads": model["kv_heads"],
        "hidden_size": model["hidden"],
    }
    if model["head_dim"]:
        config["head_dim"] = model["head_dim"]
    held = compute_safetensors_kv_cache_size(
        config, question["cache_dtype"], max_model_len=round(question["context_tokens"]), batch_size=1
    )
    return {"kv_cache_alloc": held / 2**30}


if __name__ == "__main__":
    serve(ask)
