"""What others have published comes out of their inputs by our formulas."""

import csv

import pytest

from bench.examples import FILE, Example, examples

# The saving was printed one dollar below what its own inputs give.
LOOSE = {"legitlads-saving": 2.0 / 490_903}


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_published_answer_comes_out(example: Example) -> None:
    if example.name in LOOSE:
        assert abs(example.difference) < LOOSE[example.name]
        assert "before rounding" in example.why
    else:
        assert example.is_same_when_rounded, f"{example.published} published, {example.ours} here"
        assert example.why in {"the same", "rounded"}


def test_every_collected_example_is_there(shared) -> None:
    def rows(file):
        with file.open(encoding="utf-8", newline="") as opened:
            return [{**row, "source": None} for row in csv.DictReader(opened)]

    assert rows(FILE) == rows(shared / "data" / "tco_examples.csv")


def test_rounding_is_told_from_a_difference() -> None:
    near = Example("a", "", "", "", "why not", "6.54", 6.5359)
    far = Example("b", "", "", "", "another method", "6.54", 6.60)
    assert (near.why, far.why) == ("rounded", "another method")
    assert far.difference == pytest.approx(0.00917, abs=1e-5)
