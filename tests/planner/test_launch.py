import json
import shlex

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import aliases_of, all_models
from planner.catalogues.quants import all_quants, find_quant
from planner.launch import launch, launches, to_document
from planner.serving.repositories import is_copy_of, repository_for
from planner.sizing import size
from planner.workload import Engine, KvDtype, Machine, Workload, engine_for


def sized(name, quant, machine="H200 SXM", count=1, **settings):
    chosen = find_quant(quant)
    work = Workload(model=all_models()[name], quant=chosen, engine=engine_for("auto", chosen), **settings)
    return size(work, Machine(gpu=all_gpus()[machine], gpu_count=count))


def words(command):
    return shlex.split(command.replace("\\\n", " "))


def test_llama_server():
    sizing = sized("qwen3-coder-480b-a35b", "Q4_K_M", count=4, batch=2, kv_dtype=KvDtype.Q8_0)
    command = launch(sizing).command
    assert words(command) == [
        *("llama-server", "-hf", "unsloth/Qwen3-Coder-480B-A35B-Instruct-GGUF:Q4_K_M"),
        *("--ctx-size", "16384", "--parallel", "2", "--n-gpu-layers", "999", "--flash-attn", "on"),
        *("--split-mode", "layer", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0"),
    ]


def test_vllm_serve():
    sizing = sized("qwen3-coder-480b-a35b", "FP8", count=8, batch=300, kv_dtype=KvDtype.FP8)
    assert words(launch(sizing).command) == [
        *("vllm", "serve", "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8", "--tensor-parallel-size", "8"),
        *("--max-model-len", "8192", "--gpu-memory-utilization", "0.90"),
        *("--kv-cache-dtype", "fp8", "--max-num-seqs", "300"),
    ]


def test_sglang_leaves_room_for_what_is_beside_weights_and_cache():
    sizing = sized("llama-3.1-8b-instruct", "BF16")
    found = words(launch(sizing, Engine.SGLANG).command)
    assert found[:5] == [
        "python",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "meta-llama/Llama-3.1-8B-Instruct",
    ]
    fraction = float(found[found.index("--mem-fraction-static") + 1])
    assert 0.8 < fraction < 0.90
    assert "--tp" not in found


def test_trtllm_serve():
    sizing = sized("llama-3.3-70b-instruct", "FP8", count=2, batch=16)
    found = words(launch(sizing, Engine.TENSORRT_LLM).command)
    assert found[0] == "trtllm-serve"
    assert found[found.index("--tp_size") + 1] == "2"
    assert found[found.index("--max_batch_size") + 1] == "16"


def test_offload_is_passed_on():
    llama = sized("qwen3-coder-480b-a35b", "Q4_K_M", "H100 SXM", offload_fraction=0.75)
    found = words(launch(llama).command)
    assert found[found.index("--n-gpu-layers") + 1] == "15"  # of 62 layers a quarter
    vllm = sized("llama-3.3-70b-instruct", "FP8", "RTX 4090", 2, offload_fraction=0.8)
    found = words(launch(vllm).command)
    assert found[found.index("--cpu-offload-gb") + 1] == "28"  # 67.68 GiB x 0.8 / 2 = 27.07


@pytest.mark.parametrize(
    ("name", "quant", "repository"),
    [
        ("gpt-oss-120b", "MXFP4", "openai/gpt-oss-120b"),
        ("deepseek-v3-0324", "FP8", "deepseek-ai/DeepSeek-V3-0324"),
        ("glm-5", "FP8", "zai-org/GLM-5-FP8"),
        ("llama-3.1-8b-instruct", "BF16", "meta-llama/Llama-3.1-8B-Instruct"),
        ("kimi-k2.5", "FP8", None),  # the catalogue knows a copy of Kimi K2.6 only
        ("deepseek-v2-lite-chat", "Q4_K_M", None),
    ],
)
def test_repositories(name, quant, repository):
    assert repository_for(all_models()[name], find_quant(quant))[0] == repository


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("deepseek-coder-v2-lite-instruct", "RedHatAI/DeepSeek-Coder-V2-Lite-Base-FP8"),
        ("kimi-k2.5", "RedHatAI/Kimi-K2.6-FP8-BLOCK"),
        ("qwen3-8b", "ggml-org/Qwen3-8B-Base-GGUF"),
        ("llama-3.1-8b-instruct", "unsloth/Llama-3.1-8B-bnb-4bit"),
        ("qwen2.5-7b-instruct", "bartowski/Qwen2.5-7B-Instruct-1M-GGUF"),
    ],
)
def test_another_model_of_the_same_shape_is_no_copy(name, other):
    assert other in {alias.name for alias in aliases_of(name)}
    assert not is_copy_of(all_models()[name], other)


def test_a_repository_is_known_to_the_catalogue_or_not_named():
    for model in all_models().values():
        known = {model.hf_repo, model.gguf_repo, None} | {alias.name for alias in aliases_of(model.id)}
        for quant in all_quants().values():
            assert repository_for(model, quant)[0] in known


def test_an_unknown_repository_is_said_and_left_to_the_user():
    found = launch(sized("phi-4", "MXFP4"))
    assert found.repository is None
    assert found.command.startswith('vllm serve "$MODEL"')
    assert any("no repository of Phi-4 14B in MXFP4 is known" in note for note in found.notes)
    assert '"${MODEL:?set MODEL}"' in found.compose


def test_formats_made_while_loading():
    found = launch(sized("glm-4.5-air", "NF4", count=2))
    assert found.repository == "zai-org/GLM-4.5-Air"
    assert "--quantization bitsandbytes" in found.command
    online = launch(sized("glm-4.5", "FP8", count=8))
    assert online.repository == "zai-org/GLM-4.5"
    assert "--quantization fp8" in online.command


def test_what_does_not_fit_is_said():
    notes = launch(sized("qwen3-coder-480b-a35b", "Q4_K_M", "RTX 4090")).notes
    assert any("does not fit" in note for note in notes)


def test_compose_file():
    compose = launch(sized("llama-3.3-70b-instruct", "FP8", "H100 SXM", 2)).compose
    lines = compose.splitlines()
    assert "    image: vllm/vllm-openai:latest" in lines
    assert '      - "127.0.0.1:8000:8000"' in lines
    assert "              count: 2" in lines
    assert "      - models:/cache" in lines  # a restart fetches no weights again
    assert "      - XDG_CACHE_HOME=/cache" in lines
    command = lines[lines.index("    command:") + 1]
    assert command.strip() == '- "RedHatAI/Llama-3.3-70B-Instruct-FP8-block"'


def test_no_container_where_no_image_is_published():
    assert launch(sized("llama-3.1-8b-instruct", "Q4_K_M", "Mac Studio M4 Max 128GB")).compose is None


def test_engines_that_read_the_format():
    gguf = launches(sized("llama-3.1-8b-instruct", "Q4_K_M"))
    assert [one.engine for one in gguf] == [Engine.LLAMA_CPP]
    amd = launches(sized("llama-3.1-8b-instruct", "BF16", "Instinct MI300X"))
    assert [one.engine for one in amd] == [Engine.VLLM, Engine.SGLANG]


def test_document():
    document = json.loads(json.dumps(to_document(sized("llama-3.1-8b-instruct", "FP8"))))
    assert document["schema"] == "breakeven.launch/1"
    assert [one["engine"] for one in document["launches"]] == ["vllm", "sglang", "tensorrt-llm"]
