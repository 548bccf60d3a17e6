"""Every device: plausible, found by all its names, ambiguous where its name is."""

import csv
from pathlib import Path

import pytest

from planner import catalogue
from planner.catalogue import build, lookup_key, to_table
from planner.catalogues import gpus
from planner.catalogues.gpus import Gpu, aliases_of, all_gpus, find_gpu, gpu_aliases
from planner.errors import UnknownName

ROOT = Path(__file__).resolve().parents[2]
GPUS = list(all_gpus().values())
# What an alias may also mean where the catalogue has no record of it.
IN_WORDS = {"other memory sizes and core counts", "10GB version"}
FACT_FIELDS = {
    "memory_gb_vendor": "memory_gb_vendor",
    "memory_mib_reported": "memory_mib_reported",
    "bandwidth_gbs": "bandwidth_gb_per_s",
    "fp32_tflops": "fp32_tflops",
    "tf32_dense_tflops": "tf32_dense_tflops",
    "fp16_dense_tflops": "fp16_dense_tflops",
    "bf16_dense_tflops": "bf16_dense_tflops",
    "int8_dense_tops": "int8_dense_tops",
    "fp8_dense_tflops": "fp8_dense_tflops",
    "fp4_dense_tflops": "fp4_dense_tflops",
    "fp16_fp16acc_dense_tflops": "fp16_fp16acc_dense_tflops",
    "tdp_w": "tdp_w",
    "interconnect_gbs_bidir_total": "interconnect_gb_per_s_bidirectional",
    "max_gpus_per_node": "max_gpus_per_node",
    "launch_msrp_usd": "launch_msrp_usd",
}
FACT_TEXTS = {
    "device_class": "device_class",
    "vendor": "vendor",
    "architecture": "architecture",
    "release_date": "release_date",
    "memory_mib_check": "memory_mib_basis",
    "memory_type": "memory_type",
    "compute_note": "compute_note",
    "form_factor": "form_factor",
    "interconnect": "interconnect",
    "pcie": "pcie",
    "msrp_source": "launch_msrp_source",
    "confidence": "confidence",
    "notes": "notes",
}


def in_range(value, low, high):
    return value is None or low <= value <= high


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_device_round_trips_and_is_plausible(gpu):
    assert build(Gpu, to_table(gpu)) == gpu
    assert 3 <= gpu.memory_gb_vendor <= 600
    assert in_range(gpu.bandwidth_gb_per_s, 50, 8200)
    assert in_range(gpu.fp16_dense_tflops, 0.05, 5100)
    assert in_range(gpu.bf16_dense_tflops, 2, 5100)
    assert in_range(gpu.fp8_dense_tflops, 50, 11000)
    assert in_range(gpu.fp4_dense_tflops, 100, 16000)
    assert in_range(gpu.tdp_w, 5, 2800)
    assert in_range(gpu.max_gpus_per_node, 1, 72)
    assert in_range(gpu.launch_msrp_usd, 100, 60000)
    assert gpu.confidence in {"high", "medium", "low"}


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_lower_precision_is_never_slower_and_the_driver_reports_about_the_label(gpu):
    if gpu.fp8_dense_tflops and gpu.bf16_dense_tflops:
        assert gpu.fp8_dense_tflops >= gpu.bf16_dense_tflops
    if gpu.fp4_dense_tflops and gpu.fp8_dense_tflops:
        assert gpu.fp4_dense_tflops >= gpu.fp8_dense_tflops
    if gpu.memory_mib_reported:
        assert 0.9 < gpu.memory_mib_reported * 2**20 / (gpu.memory_gb_vendor * 1e9) < 1.09


def test_the_device_of_the_worked_figures():
    gpu = find_gpu("H100 SXM").gpu
    assert (gpu.memory_gb_vendor, gpu.bandwidth_gb_per_s, gpu.bf16_dense_tflops) == (80, 3350, 989.4)


def test_the_one_device_that_was_never_sold_is_marked():
    assert [gpu.name for gpu in GPUS if not gpu.exists] == ["Mac Studio M4 Ultra 256GB"]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("H100 SXM", "H100 SXM"),
        ("h100-sxm5", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("rtx_4090", "RTX 4090"),
        (" b200 ", "B200"),
        ("mi300x", "Instinct MI300X"),
        ("DGX Spark", "DGX Spark (GB10)"),
        ("L4", "L4"),
    ],
)
def test_a_plain_name_is_not_ambiguous(spelling, name):
    match = find_gpu(spelling)
    assert (match.gpu.name, match.ambiguous_with) == (name, ())


@pytest.mark.parametrize(
    ("name", "default", "others"),
    [
        ("A100", "A100 40GB SXM", ("A100 40GB PCIe", "A100 80GB SXM", "A100 80GB PCIe")),
        ("a 100", "A100 40GB SXM", ("A100 40GB PCIe", "A100 80GB SXM", "A100 80GB PCIe")),
        ("H100", "H100 SXM", ("H100 PCIe", "H100 NVL")),
        ("A100-80GB", "A100 80GB SXM", ("A100 80GB PCIe",)),
        (
            "RTX PRO 6000",
            "RTX PRO 6000 Blackwell Workstation",
            ("RTX PRO 6000 Blackwell Server", "RTX PRO 6000 Blackwell Max-Q"),
        ),
        ("CMP 170HX", "CMP 170HX 8GB", ("10GB version",)),
    ],
)
def test_an_ambiguous_name_gives_the_default_and_says_what_else_it_may_be(name, default, others):
    match = find_gpu(name)
    assert (match.gpu.name, match.ambiguous_with) == (default, others)
    assert match.why_ambiguous


def test_two_aliases_that_differ_only_in_spelling_are_ambiguous_in_a_third_spelling():
    assert find_gpu("apple-m1").gpu.name == "Apple M1 (7-core GPU) 16GB"
    assert find_gpu("Apple M1").gpu.name == "Apple M1 (8-core GPU) 16GB"
    assert "Apple M1 (8-core GPU) 16GB" in find_gpu("APPLE M1").ambiguous_with


def test_every_name_leads_to_its_device():
    for gpu in GPUS:
        match = find_gpu(gpu.name)
        assert match.gpu == gpu
        assert match.ambiguous_with == ()
    for alias in gpu_aliases().values():
        match = find_gpu(alias.name)
        assert match.gpu.name == alias.gpu
        if alias.name != alias.gpu:
            assert match.ambiguous_with == alias.ambiguous_with


def test_what_a_name_may_also_mean_is_another_device():
    for alias in gpu_aliases().values():
        assert set(alias.ambiguous_with) <= set(all_gpus()) | IN_WORDS
        assert alias.gpu not in alias.ambiguous_with
        assert (alias.why_ambiguous is None) == (not alias.ambiguous_with)


def test_no_name_belongs_to_two_devices_in_any_spelling_but_the_first_apple_chip():
    owner = {}
    clashes = set()
    for gpu in GPUS:
        own = {gpu.name} | {alias.name for alias in aliases_of(gpu.name)}
        for key in {lookup_key(name) for name in own}:
            if owner.setdefault(key, gpu.name) != gpu.name:
                clashes.add(key)
    assert clashes == {"applem1"}


def test_an_unknown_device_is_an_error_with_close_matches():
    with pytest.raises(UnknownName, match="unknown GPU 'H1OO SXM'") as caught:
        find_gpu("H1OO SXM")
    assert caught.value.matches[0] == "H100 SXM"


@pytest.fixture
def file_holding(monkeypatch):
    """Put a text in the place of the data file, for one test."""
    caches = (gpus._catalogue, gpus._by_name, gpus._by_key, gpus.all_gpus, gpus.gpu_aliases)

    def forget():
        for cache in caches:
            cache.cache_clear()

    def put(text):
        monkeypatch.setattr(catalogue, "read_text", lambda name: text)
        forget()

    yield put
    forget()


def test_a_device_is_added_with_one_edit_in_one_file(file_holding):
    """The record in docs/catalogues.md, appended to the file, is all it takes."""
    guide = (ROOT / "docs" / "catalogues.md").read_text(encoding="utf-8")
    record = guide.partition("```toml\n")[2].partition("```")[0]
    file_holding(catalogue.read_text("gpus.toml") + record)
    assert find_gpu("example x1").gpu.memory_gb_vendor == 128
    assert find_gpu("x1").ambiguous_with == ("Example X1 PCIe",)
    assert len(all_gpus()) == len(GPUS) + 1


def test_two_records_of_one_name_are_refused(file_holding):
    record = "[[gpu]]\n" + catalogue.read_text("gpus.toml").split("\n[[gpu]]\n")[1] + "\n"
    file_holding(record + record)
    with pytest.raises(ValueError, match="'RTX 2080 Ti' occurs twice"):
        all_gpus()


def test_all_devices_of_the_facts_are_carried(shared):
    with (shared / "data" / "hardware.csv").open(encoding="utf-8", newline="") as file:
        facts = list(csv.DictReader(file))
    assert [row["canonical"] for row in facts] == [gpu.name for gpu in GPUS][: len(facts)]
    for row in facts:
        gpu = all_gpus()[row["canonical"]]
        for theirs, ours in FACT_FIELDS.items():
            # The device that was never sold has no memory on record; its name says 256 GB.
            expected = float(row[theirs]) if row[theirs] else None
            if not (gpu.exists or theirs != "memory_gb_vendor"):
                expected = 256
            assert getattr(gpu, ours) == expected, (gpu.name, ours)
        for theirs, ours in FACT_TEXTS.items():
            assert (getattr(gpu, ours) or "") == row[theirs], (gpu.name, ours)
        assert "; ".join(gpu.sources) == row["sources"]
        assert gpu.is_unified_memory == (row["unified_memory"] == "yes")
        assert (gpu.coherent_memory is not None) == row["unified_memory"].startswith("coherent")


def test_all_aliases_of_the_facts_are_carried(shared):
    with (shared / "data" / "hardware_aliases.csv").open(encoding="utf-8", newline="") as file:
        facts = list(csv.DictReader(file))
    assert len(facts) == 1567
    for row in facts:
        alias = gpu_aliases()[row["alias"]]
        assert (alias.gpu, alias.seen_in, alias.evidence) == (
            row["canonical"],
            row["seen_in"],
            row["evidence"],
        )
        assert bool(alias.ambiguous_with) == bool(row["ambiguous_with"])
        assert find_gpu(row["alias"]).gpu.name == row["canonical"]


def test_short_names_of_single_devices_are_known():
    assert find_gpu("MI355X").gpu.name == "Instinct MI355X"
    assert find_gpu("MI355X").ambiguous_with == ()
    ultra = find_gpu("M3 Ultra")
    assert {ultra.gpu.name, *ultra.ambiguous_with} == {f"Mac Studio M3 Ultra {gb}GB" for gb in (96, 256, 512)}
