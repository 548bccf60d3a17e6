import csv
import io
import json
from datetime import UTC, datetime

import openpyxl
import pyarrow.parquet as pq
import pytest

from planner.compare import Plan
from planner.errors import InvalidScenario
from planner.export import FORMATS, OPTION_COLUMNS, export_plan, newest_price, option_table, start_of
from planner.exports.focus import FOCUS_COLUMNS, month_after
from planner.rates import Tier
from planner.supply.options import Kind
from tests.planner.plans import NOW, plan_of, rate, seed_rates


@pytest.fixture(scope="module")
def found() -> Plan:
    rates = [*seed_rates(), rate("lambda", usd_per_hour="13.78"), rate("azure", tier=Tier.RESERVED_1Y)]
    return plan_of(rates, gpu="B200", gpus=2, currency="EUR")


def rows_of(data: bytes) -> list[dict[str, str]]:
    lines = [line for line in data.decode().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_same_plan_gives_the_same_bytes(name: str, found: Plan) -> None:
    later = plan_of(
        [*seed_rates(), rate("lambda", usd_per_hour="13.78"), rate("azure", tier=Tier.RESERVED_1Y)],
        gpu="B200",
        gpus=2,
        currency="EUR",
    )
    assert FORMATS[name](found, None) == FORMATS[name](later, None)
    assert FORMATS[name](found, "https://host.example/?model=x") != FORMATS[name](found, None)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_bytes_do_not_depend_on_the_time_of_asking(name: str) -> None:
    early, late = (plan_of([rate(seen_at=NOW, age_hours=age)], gpu="B200", gpus=2) for age in (1.0, 5.0))
    assert FORMATS[name](early, None) == FORMATS[name](late, None)


def test_top_of_every_export_says_what_it_is(found: Plan) -> None:
    text = FORMATS["csv"](found, "https://host.example/?model=x").decode()
    top = [line for line in text.splitlines() if line.startswith("#")]
    for part in (
        f"# verdict: {found.verdict}",
        "# permalink: https://host.example/?model=x",
        "# newest price used: 2026-11-30T09:00:00Z",
        "# scenario: model=qwen3-coder-480b-a35b; gpu=B200; gpus=2; currency=EUR",
        "# estimates: * estimated",
        "# licence: made with breakeven",
    ):
        assert any(line.startswith(part) for line in top), part
    assert any("Lambda (lambda.example)" in line for line in top if line.startswith("# sources"))


def test_permalink_defaults_to_the_start_page(found: Plan) -> None:
    text = FORMATS["csv"](found, None).decode()
    assert "# permalink: /?model=qwen3-coder-480b-a35b&gpu=B200&gpus=2&currency=EUR&v=1" in text


def test_csv_holds_every_option_and_column(found: Plan) -> None:
    rows = rows_of(FORMATS["csv"](found, None))
    assert list(rows[0]) == [*(column.name for column in OPTION_COLUMNS), "eur_per_month"]
    assert [row["kind"] for row in rows] == [str(option.kind) for option in found.options]
    runpod = next(row for row in rows if row["provider"] == "runpod")
    assert float(runpod["usd_per_hour"]) == 11.96
    assert float(runpod["usd_per_month"]) == pytest.approx(1454.336)
    assert float(runpod["eur_per_month"]) == pytest.approx(1454.336 / 1.1172)
    assert (runpod["vram_per_gpu_gb"], runpod["vram_total_gb"]) == ("180.0", "360.0")
    assert runpod["estimate"] == "*"
    assert runpod["purchase_usd"] == ""  # unknown is empty, never 0
    api = next(row for row in rows if row["kind"] == "api")
    assert api["estimate"] == ""


def test_formula_in_a_text_cell_is_made_harmless() -> None:
    rates = [
        rate(instance_type='=HYPERLINK("http://x")', provider_title="@evil,=1+1", region="+1", note="-2")
    ]
    found = plan_of(rates, gpu="B200", gpus=2)
    data = FORMATS["csv"](found, None)
    row = next(row for row in rows_of(data) if row["kind"] == "rent")
    assert row["instance_type"].startswith("'=")
    assert row["region"] == "'+1"
    assert row["notes"].startswith("'-2")
    for line in data.decode().splitlines():
        if line.startswith("#"):
            assert not any(part.startswith(("=", "+", "-", "@")) for part in line.split(","))
    sheet = openpyxl.load_workbook(io.BytesIO(FORMATS["xlsx"](found, None)))["Options"]
    assert not any(cell.data_type == "f" for line in sheet.iter_rows() for cell in line)


def test_text_from_a_provider_is_text_in_markdown_and_html() -> None:
    found = plan_of([rate(provider_title="<script>|x`")], gpu="B200", gpus=2)
    page = FORMATS["html"](found, None).decode()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\\<script\\>\\|x\\`" in FORMATS["md"](found, None).decode()


def test_html_page_asks_no_other_host(found: Plan) -> None:
    page = FORMATS["html"](found, None).decode()
    for tag in ("<script", "<img", "<link", "src=", "@import", "url("):
        assert tag not in page
    assert "default-src 'none'" in page
    assert page.count("<tr>") == len(found.options) + 1


def test_estimates_are_marked_in_text(found: Plan) -> None:
    text = FORMATS["md"](found, None).decode()
    line = next(line for line in text.splitlines() if "Runpod" in line and line.startswith("| "))
    assert line.count("\\*") == 3  # price of a token, both speeds


def test_a_document_for_people_is_in_the_currency_that_is_shown(found: Plan) -> None:
    header, _, *lines = (
        line for line in FORMATS["md"](found, None).decode().splitlines() if line[:2] in ("| ", "|-")
    )
    titles = [title.strip() for title in header.split("|")]
    assert not any("USD" in title for title in titles)
    cells = next([cell.strip() for cell in line.split("|")] for line in lines if "Runpod" in line)
    row = dict(zip(titles, cells, strict=True))
    # 11.96 USD an hour for two, at 1 EUR = 1.1172 USD; 121.6 h of them a month.
    assert (row["EUR/h"], row["EUR/GPU-h"], row["EUR/month"]) == ("10.7053", "5.3527", "1,301.77")
    assert "<th scope=col>EUR/month</th>" in FORMATS["html"](found, None).decode()
    dollars = FORMATS["md"](plan_of([rate()], gpu="B200", gpus=2), None).decode()
    assert "| 5.98 | 11.96 | 1,454.34 |" in dollars  # stored prices as they are


def test_workbook_reads_back(found: Plan) -> None:
    book = openpyxl.load_workbook(io.BytesIO(FORMATS["xlsx"](found, None)))
    assert book.sheetnames == ["Options", "Cash", "Left out"]
    lines = list(book["Options"].iter_rows(values_only=True))
    assert lines[0][:2] == ("verdict", found.verdict)
    header = next(index for index, line in enumerate(lines) if line[0] == "rank")
    names = list(lines[header])
    assert [line[names.index("name")] for line in lines[header + 1 :]] == [
        option.name for option in found.options
    ]
    month = lines[header + 1][names.index("usd_per_month")]
    assert month == pytest.approx(found.options[0].usd_per_month)
    assert book.properties.created == datetime(2026, 11, 30, 9, 0, tzinfo=UTC).replace(tzinfo=None)
    assert book["Left out"].max_row == len(found.excluded) + 1


def test_parquet_reads_back_with_types_and_metadata(found: Plan) -> None:
    table = pq.read_table(io.BytesIO(FORMATS["parquet"](found, None)))
    assert table.num_rows == len(found.options)
    assert str(table.schema.field("usd_per_month").type) == "double"
    assert str(table.schema.field("gpu_count").type) == "int64"
    top = json.loads(table.schema.metadata[b"breakeven"])
    assert top[0] == {"name": "verdict", "text": found.verdict}
    assert table.column("name").to_pylist() == [option.name for option in found.options]


def test_json_is_the_plan_with_ages_from_the_newest_price(found: Plan) -> None:
    document = json.loads(FORMATS["json"](found, None))
    assert document["schema"] == "breakeven.plan/1"
    assert document["verdict"] == found.verdict
    assert document["export"]["newest_price_used"] == "2026-11-30T09:00:00Z"
    ages = {option["provider"]: option["price"]["age_hours"] for option in document["options"]}
    assert ages["lambda"] == 0.0
    assert ages["runpod"] == 26 * 24 + 9


def test_focus_has_its_columns_and_effective_cost_is_the_monthly_cost(found: Plan) -> None:
    rows = rows_of(FORMATS["focus"](found, None))
    assert list(rows[0]) == list(FOCUS_COLUMNS)
    for number, option in enumerate(found.options, start=1):
        mine = [row for row in rows if row["SubAccountId"] == f"option-{number}"]
        effective = sum(float(row["EffectiveCost"]) for row in mine)
        assert effective == pytest.approx(option.usd_per_month)
        assert all(json.loads(row["Tags"])["x_plan"] is True for row in mine)
        if option.kind is Kind.BUY:
            cash = {row["ChargeCategory"]: float(row["BilledCost"]) for row in mine}
            assert cash["Purchase"] == pytest.approx(option.purchase_usd)
            assert cash["Credit"] < 0
            credit = next(row for row in mine if row["ChargeCategory"] == "Credit")
            assert credit["BillingPeriodStart"] == "2030-11-01T00:00:00Z"
    rent = next(row for row in rows if row["Provider"] == "Runpod")
    assert (rent["ServiceCategory"], rent["PricingUnit"], rent["PricingCategory"]) == (
        "Compute",
        "GPU-Hours",
        "Standard",
    )
    assert float(rent["PricingQuantity"]) == pytest.approx(243.2)
    assert float(rent["ListUnitPrice"]) == pytest.approx(5.98)
    assert next(row for row in rows if row["Provider"] == "Azure")["PricingCategory"] == "Committed"
    assert {row["BillingPeriodStart"] for row in rows if row["ChargeCategory"] == "Usage"} == {
        "2026-11-01T00:00:00Z"
    }
    api = [row for row in rows if row["ServiceCategory"] == "AI and Machine Learning"]
    assert {row["ConsumedUnit"] for row in api} == {"Tokens"}


def test_format_follows_the_ending_or_the_name(found: Plan) -> None:
    assert export_plan(found, "plan.csv") == FORMATS["csv"](found, None)
    assert export_plan(found, "plan.HTM") == FORMATS["html"](found, None)
    assert export_plan(found, "md") == FORMATS["md"](found, None)
    assert export_plan(found, "plan.csv", as_format="focus") == FORMATS["focus"](found, None)
    with pytest.raises(InvalidScenario, match=r"\.csv"):
        export_plan(found, "plan.pdf")


def test_plan_without_options_exports_too() -> None:
    nothing = plan_of([], gpu="H100 SXM", gpus=1, tier=["spot"])
    assert nothing.options == ()
    for name, write in FORMATS.items():
        assert write(nothing, None), name
    assert newest_price(nothing) is None
    assert len(option_table(nothing).rows) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-04T10:00:00Z", datetime(2026, 11, 4, 10, tzinfo=UTC)),
        ("2026-11-04T12:00:00+02:00", datetime(2026, 11, 4, 10, tzinfo=UTC)),
        ("2026-11-04", datetime(2026, 11, 4, tzinfo=UTC)),
        ("2026-11", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-Q3", datetime(2026, 7, 1, tzinfo=UTC)),
        ("2026-H2", datetime(2026, 7, 1, tzinfo=UTC)),
        ("some day", None),
    ],
)
def test_times_of_any_precision(text: str, expected: datetime | None) -> None:
    assert start_of(text) == expected


def test_months_run_over_the_year() -> None:
    assert month_after(datetime(2026, 11, 1, tzinfo=UTC), 2) == datetime(2027, 1, 1, tzinfo=UTC)
    assert month_after(datetime(2026, 12, 1, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)


def test_a_row_that_the_verdict_passes_over_says_why_in_every_table() -> None:
    rates = [rate("cheap", tier=Tier.SPOT, usd_per_hour="0.50"), rate("acme")]
    found = plan_of(rates, gpu="B200", gpus=2)
    rows = {row["provider"]: row for row in rows_of(FORMATS["csv"](found, None))}
    assert (rows["cheap"]["passed_over"], rows["acme"]["passed_over"]) == ("spot, may be taken away", "")
    table = pq.read_table(io.BytesIO(FORMATS["parquet"](found, None))).to_pylist()
    assert {row["provider"]: row["passed_over"] for row in table}["cheap"] == "spot, may be taken away"
    for name in ("md", "html"):
        assert "(spot, may be taken away)" in FORMATS[name](found, None).decode()


def test_a_moving_rent_has_its_mean_over_the_term_beside_it() -> None:
    (row,) = (
        row
        for row in rows_of(FORMATS["csv"](plan_of([rate()], gpu="B200", gpus=2, rent_path="decline"), None))
        if row["kind"] == "rent"
    )
    assert float(row["usd_per_month_over_term"]) == pytest.approx(
        0.667627 * float(row["usd_per_month"]), rel=1e-5
    )
    flat = rows_of(FORMATS["csv"](plan_of([rate()], gpu="B200", gpus=2), None))
    assert {row["usd_per_month_over_term"] for row in flat} == {""}
