"""What docs/accuracy.md rests on: predictions left out of the fit, the ranges around them, the fit itself."""

import csv
import tomllib

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.results import all_results
from planner.measurements.memory_replay import memory_checks
from planner.measurements.replay import METRICS, predictions, trials
from planner.serving.ranges import span_of
from planner.serving.reached import fitted
from planner.workload import Engine
from tools import fit as fitting
from tools.priors import priors


@pytest.fixture(scope="module")
def left_out(request):
    """Rows of the last `make accuracy`, by row and quantity."""
    path = request.config.rootpath / "tools" / "left_out.csv"
    with path.open(encoding="utf-8") as file:
        return {(row["row_id"], row["quantity"]): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def rows():
    return {engine: trials(all_results(), engine) for engine in (Engine.LLAMA_CPP, Engine.VLLM)}


def test_the_file_is_of_these_constants(left_out, rows):
    for these in rows.values():
        for quantity in fitting.QUANTITIES:
            which = np.flatnonzero(fitting.quantity_rows(these, quantity))
            now = predictions(these)[which]
            then = [float(left_out[these.results[place].row_id, quantity]["estimate"]) for place in which]
            assert now.tolist() == pytest.approx(then, rel=1e-3)


@pytest.mark.parametrize("quantity", list(fitting.QUANTITIES))
def test_ranges_hold_80_percent_of_what_was_left_out(left_out, rows, quantity):
    inside = []
    for engine, these in rows.items():
        for place in np.flatnonzero(fitting.quantity_rows(these, quantity)):
            result = these.results[place]
            row = left_out[result.row_id, quantity]
            span = span_of(all_gpus()[result.gpu], engine, quantity)
            inside.append(span.low <= float(row["measured"]) / float(row["left_out"]) <= span.high)
    assert 0.75 <= np.mean(inside) <= 0.90


@pytest.mark.parametrize(
    ("quantity", "bound"),
    # docs/accuracy.md: 9.7, 17.6, 22.8, 35.6, 26.8 %
    [("decode", 0.10), ("aggregate", 0.18), ("tpot", 0.235), ("ttft", 0.365), ("prefill", 0.28)],
)
def test_left_out_errors_are_no_worse_than_published(left_out, quantity, bound):
    errors = [
        abs(float(row["left_out"]) / float(row["measured"]) - 1)
        for (_, name), row in left_out.items()
        if name == quantity
    ]
    assert np.median(errors) < bound


def test_errors_of_memory_are_no_worse_than_published():
    by_quantity = {}
    for check in memory_checks():
        by_quantity.setdefault(check.quantity, []).append(abs(check.error))
    bounds = {
        "GGUF files, formats of the catalogue": 0.004,
        "weights in vLLM": 0.005,
        "cache pool of vLLM": 0.002,
        "cache in llama.cpp": 1e-4,
        "compute buffer of llama.cpp, plain attention": 0.001,
        "whole run of transformers": 0.015,
    }
    for quantity, bound in bounds.items():
        assert np.median(by_quantity[quantity]) < bound, quantity


def test_every_constant_has_a_prior_and_lies_within_its_bounds():
    known = {prior.name: prior for prior in priors()}
    assert set(fitted()) == set(known)
    for name, value in fitted().items():
        prior = known[name]
        assert prior.low * 0.999 <= value <= prior.high * 1.001, name
        assert prior.low < prior.value < prior.high, name
        assert prior.what
    assert {prior.name for prior in priors(unseen=True)} == set(known)


def test_the_file_of_constants_says_where_it_comes_from(request):
    path = request.config.rootpath / "planner" / "data" / "fitted.toml"
    text = path.read_text(encoding="utf-8")
    assert "not edited by hand" in text
    provenance = tomllib.loads(text)["provenance"]
    assert provenance["measurements"] == sum(
        1 for result in all_results() if result.metric in METRICS and result.model
    )
    assert len(provenance["sources"]) == 18
    # constants that no measurement told of are marked as their prior
    known = {prior.name: prior.value for prior in priors()}
    for line in text.splitlines():
        if line.endswith("# prior"):
            name = line.split('"')[1]
            assert fitted()[name] == pytest.approx(known[name], rel=1e-5)


def test_a_fit_finds_the_constants_that_made_its_rows(rows):
    these = rows[Engine.LLAMA_CPP]
    decode = these.chosen(fitting.quantity_rows(these, "decode"))
    truth = {**fitted(), "llama.efficiency": 0.7, "llama.layer_us": 120.0}
    made = fitting.replace_measured(decode, predictions(decode, truth))
    found = fitting.fit(made, truth, ["llama.efficiency", "llama.layer_us"], priors())
    assert found.parameters["llama.efficiency"] == pytest.approx(0.7, rel=0.02)
    assert found.parameters["llama.layer_us"] == pytest.approx(120.0, rel=0.05)
    assert set(found.moved) == {"llama.efficiency", "llama.layer_us"}


def test_what_hardware_does_not_allow_is_not_fitted(rows):
    these = rows[Engine.VLLM]
    which = np.array([result.source.startswith("argonne") for result in these.results])
    argonne = these.chosen(which & (np.arange(len(which)) % 5 == 0))
    beyond = these.chosen(np.array([result.row_id == "arg-0224" for result in these.results]))
    names, known = ["of_2024.step_ms"], priors()
    alone = fitting.fit(argonne, fitted(), names, known).parameters["of_2024.step_ms"]
    ids = {result.row_id for these in (argonne, beyond) for result in these.results}
    more = these.chosen(np.array([result.row_id in ids for result in these.results]))
    assert len(more.results) == len(ids)
    assert fitting.fit(more, fitted(), names, known).parameters["of_2024.step_ms"] == pytest.approx(alone)


def test_groups_weigh_as_the_root_of_their_rows(rows):
    these = rows[Engine.VLLM]
    weights, names = fitting.row_weights(these), np.array(fitting.groups(these))
    totals = {name: np.sum(np.square(weights[names == name])) for name in set(names.tolist())}
    # 1 / 0.08^2 for a lone row; first tokens have twice the spread, a quarter in squares
    for name, total in totals.items():
        alone = 0.25 / 0.08**2 if name.endswith("ttft_ms") else 1.0 / 0.08**2
        assert total == pytest.approx(alone * np.sqrt((names == name).sum()))


def test_a_row_that_is_far_off_pulls_no_harder_than_in_proportion():
    near, far = fitting.soft_l1(np.array([0.01, 3.0])) ** 2
    assert near == pytest.approx(0.01**2, rel=0.01)
    assert far < 2 * 0.3 * 3.0


def test_a_constant_that_no_row_tells_of_keeps_its_prior(rows):
    these = rows[Engine.LLAMA_CPP]
    apple = these.chosen(np.array(["Apple" in result.gpu for result in these.results]))
    names = ["family.apple.llama_efficiency", "family.geforce.llama_efficiency"]
    found = fitting.fit(apple, fitted(), names, priors())
    assert found.moved == ("family.apple.llama_efficiency",)
    known = {prior.name: prior.value for prior in priors()}
    assert found.parameters[names[1]] == known[names[1]]
