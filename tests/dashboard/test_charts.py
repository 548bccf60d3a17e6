"""Charts on their data: what is drawn, what the words say, and that nothing is told by colour alone."""

import re
from itertools import pairwise

import pytest

from dashboard import charts
from dashboard.rows import market_rows, points, size_rows
from planner.answers.money import Money
from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import find_model
from planner.catalogues.quants import find_quant
from planner.compare import CostByHours, Crossing
from planner.matrix import over_contexts
from planner.scenario import Scenario
from planner.sizing import size
from planner.workload import Machine

CROSSING = Crossing(
    months=(0.0, 12.0, 24.0),
    rent_usd=(0.0, 12000.0, 24000.0),
    own_usd=(9000.0, 12000.0, 15000.0),
    api_usd=None,
    rent_name="rent 2x B200 (RunPod)",
    own_name="buy 2x B200",
    api_name=None,
    break_even_months=12.0,
)
HOURS = CostByHours(
    hours_per_day=(0.0, 12.0, 24.0),
    rent_usd_per_month=(0.0, 1200.0, 2400.0),
    own_usd_per_month=(600.0, 660.0, 720.0),
    rent_name="rent 2x B200 (RunPod)",
    own_name="buy 2x B200",
    break_even_hours_per_day=6.0,
)


def drawn(drawing: charts.Drawing) -> list[dict[str, object]]:
    """Return every row of data in a chart."""
    chart = drawing.chart.to_dict()
    layers = chart.get("layer", [chart])
    return [row for layer in layers for row in layer.get("data", chart.get("data", {})).get("values", [])]


def test_words_take_the_colour_of_the_page_and_the_chart_is_what_the_schema_allows():
    drawing = charts.crossing(CROSSING, Money())
    dark, spec = drawing.to_spec(is_dark=True), drawing.to_spec(is_dark=False)
    assert dark["config"]["axis"]["labelColor"] == "#e6e6e6"
    assert spec["config"]["text"] == {"color": "#31333f"}
    assert "#0072B2" in str(spec)
    assert "#0072B2" not in str(dark)
    checked = drawing.chart.to_dict(validate=True)
    assert {key: spec[key] for key in ("layer", "height")} == {
        key: checked[key] for key in ("layer", "height")
    }


def layers_of(drawing: charts.Drawing, mark: str) -> list[dict[str, object]]:
    return [layer for layer in drawing.chart.to_dict()["layer"] if layer["mark"]["type"] == mark]


def sizing(model: str, gpu: str, count: int = 1, **options: object):
    scenario = Scenario(model=model, **options)
    work = scenario.workload(find_model(model).model, find_quant(scenario.quant))
    return size(work, Machine(gpu=find_gpu(gpu).gpu, gpu_count=count))


def test_the_crossing_is_marked_where_the_lines_meet():
    drawing = charts.crossing(CROSSING, Money())
    marks = [row for row in drawn(drawing) if "text" in row]
    assert marks[0] == {"x": 12.0, "y": 12000.0, "text": "pays back after 12.0 months"}
    assert "rent 24,000 USD; own 15,000 USD" in drawing.alt
    assert drawing.names == "rent 2x B200 (RunPod); buy 2x B200"


def test_a_purchase_that_never_pays_has_no_mark_and_says_so():
    drawing = charts.crossing(
        Crossing(
            months=(0.0, 12.0),
            rent_usd=(0.0, 100.0),
            own_usd=(9000.0, 9500.0),
            api_usd=(0.0, 10.0),
            rent_name="rent",
            own_name="buy",
            api_name="API",
            break_even_months=None,
        ),
        Money(),
    )
    assert [row for row in drawn(drawing) if "text" in row] == []
    assert "does not pay back" in drawing.alt
    assert {row["line"] for row in drawn(drawing)} == {"rent", "own", "API"}


def test_amounts_are_drawn_in_the_currency_that_is_shown():
    euro = Money(currency="EUR", usd_per_unit=1.25)
    drawing = charts.crossing(CROSSING, euro)
    assert {"months": 24.0, "rent": 19200.0, "own": 12000.0} in drawing.rows
    assert "rent 19,200 EUR" in drawing.alt


def test_the_present_hours_are_marked_beside_the_break_even():
    drawing = charts.cost_by_hours(HOURS, Money(), here=4.0)
    rows = drawn(drawing)
    assert {"x": 4.0} in rows
    assert {"x": 6.0, "y": 600.0, "text": "the same at 6.0 h a day"} in rows
    assert drawing.rows[1] == {"hours a day": 12.0, "rent": 1200.0, "own": 660.0}


def test_nothing_to_draw_is_no_chart():
    nothing = Crossing(
        months=(0.0,),
        rent_usd=None,
        own_usd=None,
        api_usd=None,
        rent_name=None,
        own_name=None,
        api_name=None,
        break_even_months=None,
    )
    assert charts.crossing(nothing, Money()) is None


def test_lines_differ_by_dash_as_well_as_by_colour():
    line = layers_of(charts.crossing(CROSSING, Money()), "line")[0]
    encoding = line["encoding"]
    for channel in ("color", "strokeDash"):
        shown = encoding[channel]["scale"]["range"]
        assert encoding[channel]["legend"] is None
        assert len({str(value) for value in shown}) == len(shown) == 2


def test_names_at_line_ends_do_not_cover_each_other():
    close = [points.Line(label=str(n), points=[(0.0, 0.0), (1.0, 100.0 + n / 100)]) for n in range(4)]
    drawing = charts.lines(close, x_title="x", y_title="y", alt_text="four lines", height=300)
    heights = sorted(row["y"] for row in drawn(drawing) if row["x"] == 1.0)[-4:]
    assert all(above - below >= 100 * 13 / 300 for below, above in pairwise(heights))


def test_the_memory_bars_pile_up_to_what_is_needed():
    sized = sizing("qwen3-coder-480b-a35b", "H100 SXM")
    drawing = charts.memory(sized)
    bars = [row for row in drawn(drawing) if "from" in row]
    assert [row["row"] for row in bars[:3]] == ["Weights", "KV cache", "Runtime"]
    assert bars[0]["from"] == 0.0
    assert bars[1]["from"] == bars[0]["to"]
    assert bars[2]["to"] == pytest.approx(sized.memory.total_bytes / 2**30)
    assert drawing.alt.startswith("It does not fit")
    assert re.search(r"of 78\.75 GiB usable", drawing.alt)


def test_the_simple_method_gives_the_figures_of_the_sizing_page():
    drawing = charts.memory(sizing("qwen3-coder-480b-a35b", "H100 SXM", method="simple"))
    said = {row["row"]: row["text"] for row in drawn(drawing) if "from" in row}
    assert said == {"Weights": "271.39 GiB", "KV cache": "1.94 GiB", "Runtime": "0.57 GiB"}
    assert "273.90 of 76.00 GiB" in drawing.alt


def test_memory_grows_with_the_context_towards_what_is_usable():
    base = sizing("qwen3-8b", "RTX 4090")
    drawing = charts.context(over_contexts(base.workload, base.machine))
    needed = [row["y"] for row in drawn(drawing) if row.get("line") == "needed"]
    assert needed[:4] == sorted(needed[:4])
    assert "usable" in drawing.alt


def test_the_grid_says_in_words_how_many_gpus_hold_a_model():
    cells = size_rows.fit_cells(
        Scenario(model="qwen3-8b"), ["qwen3-8b", "qwen3-coder-480b-a35b"], ["RTX 4090", "H200 SXM"]
    )
    assert [cell.word for cell in cells] == ["fits", "fits", "no", "2 GPUs"]
    rows = size_rows.cells_as_rows(cells)
    assert list(rows[1]) == ["", "RTX 4090", "H200 SXM"]
    assert rows[1]["RTX 4090"] == "not with 8"
    assert re.fullmatch(r"2x H200 SXM: [\d.]+\* tok/s", rows[1]["H200 SXM"])


def test_a_history_over_years_says_the_year(database):
    offers = [offer for offer in market_rows.history("H100 SXM", []) if offer.is_rankable]
    layers = charts.history("H100 SXM", offers, Money()).chart.to_dict()["layer"]
    assert {layer["encoding"]["x"]["axis"]["format"] for layer in layers} == {"%Y-%m-%d"}


def test_the_bars_of_prices_say_of_what_and_of_when_they_are(database):
    rows = [row for row in market_rows.market(Money()) if row["is_ranked"]]
    drawing = charts.price_bars(rows, "USD")
    assert drawing.title == "The cheapest of each, for the 20 GPUs that are offered most often"
    words = [value["text"] for value in drawing.chart.to_dict()["data"]["values"]]
    assert len(words) == 20
    assert all(re.search(r", \d{4}-\d\d-\d\d$", word) for word in words), words
    assert charts.price_bars(rows[:1], "USD").title == "The cheapest of these"


def test_only_the_points_on_the_front_are_named():
    dots = [
        points.Dot(x=10.0, y=5.0, label="fast", kind="rent", is_front=True),
        points.Dot(x=5.0, y=2.0, label="cheap", kind="buy", is_front=True),
        points.Dot(x=5.0, y=9.0, label="beaten", kind="rent"),
        points.Dot(x=0.0, y=1.0, label="not measurable", kind="rent"),
    ]
    drawing = charts.cloud(dots, x_title="x", y_title="y", alt_text="points")
    named = layers_of(drawing, "text")[0]["data"]["values"]
    assert [row["label"] for row in named] == ["cheap", "fast"]
    assert "not measurable" not in str(drawn(drawing))
    assert layers_of(drawing, "point")[0]["encoding"]["shape"]["scale"]["range"] == ["circle", "square"]
