import dataclasses
import json
import re
import shlex

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import aliases_of, all_models
from planner.catalogues.quants import all_quants, find_quant
from planner.errors import InvalidScenario
from planner.launch import launch, launches, to_document
from planner.measurements.belonging import check_offload
from planner.serving.hosting import host_share, layers_to_host
from planner.serving.repositories import is_copy_of, repository_for
from planner.sizing import size
from planner.units import GIB
from planner.workload import Engine, KvDtype, Layout, Machine, Method, Workload, engine_for


def sized(name, quant, machine="H200 SXM", count=1, engine="auto", **settings):
    chosen = find_quant(quant)
    work = Workload(model=all_models()[name], quant=chosen, engine=engine_for(engine, chosen), **settings)
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


@pytest.mark.parametrize(
    ("name", "offload", "layers", "experts"),
    [
        ("llama-3.3-70b-instruct", 0.75, "20", None),  # of 80 layers a quarter
        ("qwen3-coder-480b-a35b", 0.75, "999", "48"),  # 62 x 0.75 / 0.97428, routed experts being 97.4 %
        ("qwen3-coder-480b-a35b", 0.99, "24", "62"),  # (0.99 - 0.97428) / 0.02572 of 62 layers is 37.9
        ("qwen3-coder-480b-a35b", 1.0, "0", "62"),
        ("deepseek-v3-0324", 0.5, "999", "33"),  # 3 layers have no experts: 3 + 58 x 0.5 / 0.97408 = 32.8
        ("llama-4-maverick", 0.5, "999", "26"),  # every other of 48 layers has: 48 x 0.5 / 0.95695 = 25.1
    ],
)
def test_offload_starts_llama_cpp_with_the_experts_in_host_memory_first(name, offload, layers, experts):
    found = words(launch(sized(name, "Q4_K_M", "H100 SXM", offload_fraction=offload)).command)
    assert found[found.index("--n-gpu-layers") + 1] == layers
    assert ("--n-cpu-moe" in found) is (experts is not None)
    assert experts is None or found[found.index("--n-cpu-moe") + 1] == experts


def test_the_simple_method_offloads_whole_layers():
    asked = {"offload_fraction": 0.75, "method": Method.SIMPLE}
    found = words(launch(sized("qwen3-coder-480b-a35b", "Q4_K_M", "H100 SXM", **asked)).command)
    assert found[found.index("--n-gpu-layers") + 1] == "15"  # of 62 layers a quarter
    assert "--n-cpu-moe" not in found


@pytest.mark.parametrize("name", [name for name, model in all_models().items() if model.moe])
def test_a_benchmark_of_what_was_launched_is_taken_for_the_same_offload(name):
    model = all_models()[name]
    for percent in range(1, 101):
        work = Workload(model=model, quant=find_quant("Q4_K_M"), offload_fraction=percent / 100)
        held = layers_to_host(work)
        row = {"n_gpu_layers": model.num_layers - held.whole, "n_cpu_moe": held.experts}
        assert check_offload(row, work) is None
        assert percent / 100 - 1e-9 <= host_share(model, work.quant, held) <= 1.0 + 1e-9


def test_offload_is_passed_on():
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


@pytest.mark.parametrize(
    ("quant", "engine", "asked", "flag", "value", "note"),
    [
        ("BF16", "vllm", "q8_0", "--kv-cache-dtype", "fp8", "vllm has no q8_0 cache: it is started with fp8"),
        (
            "BF16",
            "vllm",
            "q4_0",
            "--kv-cache-dtype",
            "fp8",
            "the nearest, of 1.8 times the size",
        ),  # 1 / 0.5625
        ("BF16", "sglang", "q8_0", "--kv-cache-dtype", "fp8_e4m3", "sglang has no q8_0 cache"),
        ("Q4_K_M", "llama.cpp", "fp8", "--cache-type-v", "q8_0", "llama.cpp has no fp8 cache"),
        ("BF16", "tensorrt-llm", "q8_0", None, None, "an fp8 cache is set in the file"),
    ],
)
def test_a_cache_that_the_engine_has_not_is_started_as_the_nearest(quant, engine, asked, flag, value, note):
    found = launch(sized("llama-3.1-8b-instruct", quant, engine=engine, kv_dtype=KvDtype(asked)))
    assert any(note in said for said in found.notes)
    said = words(found.command)
    assert flag is None or said[said.index(flag) + 1] == value


@pytest.mark.parametrize(
    ("quant", "engine", "machine", "context", "message"),
    [
        ("AWQ", "llama.cpp", "RTX 4090", 8192, "quant: 'AWQ' is not allowed; give a GGUF format"),
        ("Q4_K_M", "tensorrt-llm", "RTX 4090", 8192, "tensorrt-llm reads none; or engine llama.cpp"),
        (
            "BF16",
            "vllm",
            "Mac Studio M4 Max 128GB",
            8192,
            "engine: 'vllm' is not allowed; give llama.cpp: vllm does not run on Apple devices",
        ),
        (
            "BF16",
            "tensorrt-llm",
            "Instinct MI300X",
            8192,
            "give vllm or sglang or llama.cpp: tensorrt-llm does not run on AMD devices",
        ),
        ("BF16", "vllm", "H200 SXM", 131_073, "context: 131073 is not allowed; give up to 131,072 tokens"),
    ],
)
def test_what_the_engine_cannot_start_is_refused(quant, engine, machine, context, message):
    sizing = sized("llama-3.1-8b-instruct", quant, machine, engine=engine, context_tokens=context)
    with pytest.raises(InvalidScenario, match=re.escape(message)):
        launches(sizing)


def test_another_engine_that_cannot_start_it_is_left_out():
    mac = launches(sized("llama-3.1-8b-instruct", "BF16", "Mac Studio M4 Max 128GB", engine="llama.cpp"))
    assert [one.engine for one in mac] == [Engine.LLAMA_CPP]
    long = launches(sized("llama-3.1-8b-instruct", "BF16", engine="llama.cpp", context_tokens=200_000))
    assert [one.engine for one in long] == [Engine.LLAMA_CPP]
    assert "llama.cpp cuts each sequence to the model's 131,072 tokens" in long[0].notes


def test_notes_of_the_sizing_are_carried_on():
    sizing = sized("llama-3.1-8b-instruct", "BF16", "H100 SXM", 16)
    cache = "8 KV heads on 16 GPUs: some of the cache is kept more than once"
    assert cache in sizing.notes
    assert set(sizing.notes) <= set(launch(sizing).notes)
    assert to_document(sizing)["notes"] == list(sizing.notes)
    assert cache in launch(sizing, Engine.SGLANG).notes


def test_gpus_among_which_the_heads_do_not_divide_are_refused_whatever_the_method():
    # 28 heads: 7 is the largest number of ranks up to 8
    why = "gpus: 8 is not allowed; give 7, or a pipeline of 2 stages: 28 attention heads do not divide"
    for method in Method:
        with pytest.raises(InvalidScenario, match=re.escape(why)):
            launches(sized("qwen2.5-7b-instruct", "BF16", "H100 SXM", 8, method=method))
    # 24 heads, and 17 GPUs have no 2 stages: 16 have 2 of 8; 12 would be the most without stages
    why = "gpus: 17 is not allowed; give 16, or a pipeline of 17 stages: 24 attention heads do not divide"
    with pytest.raises(InvalidScenario, match=re.escape(why)):
        launches(sized("qwen3.8-flash-next", "BF16", "H100 SXM", 17, layout=Layout(pipeline=2)))
    staged = sized("qwen2.5-7b-instruct", "BF16", "H100 SXM", 8, layout=Layout(pipeline=2))
    assert launches(staged)[0].engine is Engine.VLLM
    split = launches(sized("qwen2.5-7b-instruct", "BF16", "H100 SXM", 8, engine="llama.cpp"))
    assert [one.engine for one in split] == [Engine.LLAMA_CPP]


def test_what_has_run_is_started():
    asked = sized("qwen2.5-7b-instruct", "BF16", "H100 SXM", 8)
    ran = size(asked.workload, asked.machine, measured_decode_tokens_per_s=300.0)
    assert launches(ran)[0].engine is Engine.VLLM


def test_the_simple_method_fits_where_the_server_that_is_started_does_not():
    asked = {"method": Method.SIMPLE, "context_tokens": 50_000}
    sizing = sized("llama-3.3-70b-instruct", "BF16", "H100 SXM", 2, **asked)
    assert sizing.memory.fits
    real = size(dataclasses.replace(sizing.workload, method=Method.CALIBRATED), sizing.machine).memory
    assert not real.fits
    total, usable = real.total_bytes / GIB, real.usable_bytes / GIB
    assert launch(sizing).notes[0] == (
        f"what is started does not fit by the calibrated estimate: {total:.2f} of {usable:.2f} GiB usable"
    )


def test_a_gguf_format_in_vllm_and_sglang():
    found = launch(sized("llama-3.1-8b-instruct", "Q4_K_M", engine="vllm"))
    assert words(found.command)[:5] == [
        *("vllm", "serve", "unsloth/Llama-3.1-8B-Instruct-GGUF:Q4_K_M"),
        *("--tokenizer", "meta-llama/Llama-3.1-8B-Instruct"),
    ]
    assert any("vllm-gguf-plugin" in note for note in found.notes)
    file = launch(sized("llama-3.1-8b-instruct", "Q4_K_M", engine="sglang"))
    assert file.repository is None
    assert '--model-path "$MODEL"' in file.command
    assert "set MODEL to a GGUF file of Llama 3.1 8B Instruct in Q4_K_M" in file.notes


def test_mxfp4_is_a_type_of_gguf_files_too():
    found = launch(sized("gpt-oss-20b", "MXFP4", engine="llama.cpp"))
    assert words(found.command)[:3] == ["llama-server", "-m", "$MODEL"]


def test_positions_beyond_the_configuration_are_said_to_need_scaling():
    # Qwen2.5 7B: 32,768 in its configuration, 131,072 by its card
    model = all_models()["qwen2.5-7b-instruct"]
    wide = dataclasses.replace(model, advertised_context=131_072)
    work = Workload(model=wide, quant=find_quant("BF16"), engine=Engine.VLLM, context_tokens=65_536)
    notes = launch(size(work, Machine(gpu=all_gpus()["H200 SXM"]))).notes
    assert any(note.startswith("context 65,536 is above the 32,768 tokens") for note in notes)


def test_document():
    document = json.loads(json.dumps(to_document(sized("llama-3.1-8b-instruct", "FP8"))))
    assert document["schema"] == "breakeven.launch/1"
    assert [one["engine"] for one in document["launches"]] == ["vllm", "sglang", "tensorrt-llm"]
