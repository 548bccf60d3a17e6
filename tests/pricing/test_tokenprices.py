"""Prices of API tokens: read strictly, judged against what is known, kept with their days, used by plans."""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalogues.tokens import all_token_prices, api_prices
from planner.compare import plan
from planner.scenario import Scenario
from planner.supply.options import Kind
from pricing.errors import FetchError, ParseError
from pricing.http import Client
from pricing.offer import Verdict
from pricing.provider import Page, Request, Site
from pricing.running import runs
from pricing.settings import Settings
from pricing.storage.memory import RunStatus
from pricing.store import Store
from pricing.tokens import tokenprices
from pricing.tokens.litellm import FEWEST_ENTRIES, LITELLM, PROVIDERS, ListedPrice, read_prices
from pricing.tokens.tokenprices import Brought, TokenReport, model_ids
from pricing.tokens.tokenverdicts import HeldPrice, judge
from tests.pricing.loopback import LoopbackServer

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
DAY = timedelta(days=1)
CODER = "qwen3-coder-480b-a35b"
KEY = "deepinfra/Qwen/Qwen3-Coder-480B-A35B-Instruct"
PATH = "/litellm/BerriAI/litellm/main/model_prices_and_context_window.json"
RECORDED = json.loads((Path(__file__).parent / "litellm" / "model_prices.json").read_text(encoding="utf-8"))
# The recording is cut down; what is no price of text fills it up to the least number of entries.
FILL = {
    f"painter/picture-{number}": {"mode": "image_generation", "litellm_provider": "painter"}
    for number in range(FEWEST_ENTRIES)
}


def listed(**changed: Any) -> dict[str, Any]:
    """Return the recorded list, some entries of it changed; None takes one out."""
    entries = {**RECORDED, **FILL}
    for key, change in changed.items():
        if change is None:
            del entries[key]
        else:
            entries[key] = {**entries.get(key, {}), **change}
    return entries


def at(usd_in: float | str, usd_out: float | str, **more: Any) -> dict[str, Any]:
    return {"input_cost_per_token": usd_in, "output_cost_per_token": usd_out, **more}


def page(entries: object) -> Page:
    return Page(key="prices", url=LITELLM.pages["prices"], body=json.dumps(entries).encode())


def read(**changed: Any) -> dict[tuple[str, str], ListedPrice]:
    return {price.key: price for price in read_prices(page(listed(**changed)))[0]}


# -- reading ------------------------------------------------------------------------------------------


def test_the_recorded_prices_are_read_exactly() -> None:
    prices, problems = read_prices(page(listed()))
    found = {price.key: price for price in prices}
    coder = found["DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct"]
    assert (coder.usd_per_mtok_input, coder.usd_per_mtok_output) == (Decimal("0.4"), Decimal("1.6"))
    assert coder.usd_per_mtok_cached_input is None
    deepseek = found["DeepInfra", "deepseek-ai/DeepSeek-V3.1"]
    assert deepseek.usd_per_mtok_cached_input == Decimal("0.216")
    oss = found["Fireworks AI", "gpt-oss-20b"]
    assert (oss.usd_per_mtok_input, oss.usd_per_mtok_cached_input) == (Decimal("0.07"), Decimal("0.035"))
    assert len(found) == 16  # of 23 entries; the same model under two names of Fireworks is one
    assert problems == []


def test_pictures_sounds_embeddings_and_other_providers_are_no_prices_of_text() -> None:
    providers = {provider for provider, _ in read()}
    assert providers == {"DeepInfra", "Fireworks AI"}
    assert not any("gte" in model or "whisper" in model for _, model in read())


def test_every_provider_named_is_one_of_the_bundled_list() -> None:
    litellm = {each.provider for each in all_token_prices() if "litellm" in each.source}
    assert {provider for provider, *_ in PROVIDERS.values()} >= litellm


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (at(0, 0), "0 or absent, which is not free"),
        (at(4e-7, 0.0), "0 or absent, which is not free"),
        ({"output_cost_per_token": None}, "0 or absent, which is not free"),
        (at("4e-07", 1.6e-6), "input_cost_per_token is '4e-07', not a number"),
        (at(True, 1.6e-6), "input_cost_per_token is True, not a number"),
        (at(-4e-7, 1.6e-6), "input_cost_per_token is -4e-7"),
        (at(4e-7, 1e300), "output_cost_per_token is 1e+300"),
        (at(4e-7, 10**400), "output_cost_per_token is 1.00000e+400"),
        ({"cache_read_input_token_cost": 5e-7}, "cached input at 0.5 USD costs more than input at 0.4"),
    ],
)
def test_what_is_no_price_is_a_problem_and_spoils_no_other(change: Mapping[str, Any], why: str) -> None:
    prices, problems = read_prices(page(listed(**{KEY: dict(change)})))
    assert len(prices) == 15
    (problem,) = problems
    assert problem.what == KEY
    assert why in problem.why


def test_a_price_by_tiers_says_so() -> None:
    found = read(**{KEY: {"input_cost_per_token_above_200k_tokens": 8e-7}})
    assert found["DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct"].notes == "long prompts cost more"


def test_two_prices_of_one_model_are_a_problem() -> None:
    _, problems = read_prices(page(listed(**{"fireworks_ai/minimax-m3": at(9e-7, 1.2e-6)})))
    assert problems[0].why == "a second price of minimax-m3 at Fireworks AI"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (RECORDED, "fewer than 500: cut short"),
        ([], "not the list"),
        ({"models": {}}, "no sample_spec"),
    ],
)
def test_anything_else_is_refused(entries: object, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_prices(page(entries))


def test_one_number_beyond_all_decimals_costs_its_own_row_or_is_told() -> None:
    body = json.dumps(listed(**{KEY: at(4e-7, 1.5)})).replace(" 1.5,", " 1e999999,").encode()
    (problem,) = read_prices(Page(key="prices", url="", body=body))[1]
    assert problem.why == "output_cost_per_token is 1e+999999"
    body = json.dumps(listed(**{KEY: at(4e-7, 1.5)})).replace(" 1.5,", " 1e9999999999999999999,").encode()
    with pytest.raises(ParseError, match="not valid JSON"):
        read_prices(Page(key="prices", url="", body=body))


def test_numbers_that_are_none_are_refused() -> None:
    body = json.dumps(listed(**{KEY: at(float("nan"), 1.6e-6)})).encode()
    with pytest.raises(ParseError, match="NaN is not a number"):
        read_prices(Page(key="prices", url="", body=body))


# -- judging ------------------------------------------------------------------------------------------


def verdict_of(
    usd_in: str, usd_out: str, *, model: str = "Qwen/Qwen3-Coder-480B-A35B-Instruct", **more: Any
) -> tuple[Verdict, str | None]:
    price = ListedPrice(
        provider="DeepInfra",
        model=model,
        usd_per_mtok_input=Decimal(usd_in),
        usd_per_mtok_output=Decimal(usd_out),
    )
    fields: dict[str, Any] = {"verified": {}, "waiting": {}, "bundled": api_prices(CODER)}
    ids = {price.key: CODER}
    (one,) = judge([price], **{**fields, **more}, model_ids=ids, now=NOW)
    return one.verdict, one.reason


def test_a_price_near_the_bundled_one_is_taken_and_one_that_jumped_waits() -> None:
    assert verdict_of("0.4", "1.6") == (Verdict.VERIFIED, None)
    assert verdict_of("0.2", "3.2") == (Verdict.VERIFIED, None)  # twice, and half: still a move
    assert verdict_of("0.4", "3.21") == (
        Verdict.QUARANTINED,
        "output at 3.21 USD a million tokens after 1.6 (bundled, 2026-11): more than 2 times",
    )
    assert verdict_of("0.19", "1.6")[0] is Verdict.QUARANTINED


def test_the_last_price_in_force_goes_before_the_bundled_one() -> None:
    key = ("DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct")
    held = HeldPrice(usd=(Decimal("0.2"), Decimal("0.8"), None), day="2026-12-01")
    assert verdict_of("0.15", "0.5", verified={key: held})[0] is Verdict.VERIFIED
    verdict, why = verdict_of("0.4", "1.7", verified={key: held})
    assert (verdict, why) == (
        Verdict.QUARANTINED,
        "output at 1.7 USD a million tokens after 0.8 (2026-12-01): more than 2 times",
    )


@pytest.mark.parametrize("usd", ["15000", "0.0004"])
def test_another_unit_is_rejected_for_good(usd: str) -> None:
    verdict, why = verdict_of("0.4", usd)
    assert verdict is Verdict.REJECTED
    assert "another unit?" in (why or "")
    held = HeldPrice(
        usd=(Decimal("0.4"), Decimal(usd), None),
        day="",
        first_seen_at=NOW - 30 * DAY,
        verdict=Verdict.REJECTED,
    )
    waiting = {("DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct"): held}
    assert verdict_of("0.4", usd, waiting=waiting)[0] is Verdict.REJECTED


def test_a_model_that_is_new_at_a_provider_is_held_against_the_other_providers() -> None:
    # Elsewhere 1.00 to 1.80 for a million tokens of the same model.
    assert verdict_of("0.4", "5.4", model="new")[0] is Verdict.VERIFIED
    verdict, why = verdict_of("0.4", "5.5", model="new")
    assert (verdict, why) == (
        Verdict.QUARANTINED,
        "output at 5.5 USD a million tokens, 1 to 1.8 elsewhere",
    )
    assert verdict_of("0.4", "1.6", model="new", bundled=())[0] is Verdict.QUARANTINED


def test_what_stood_for_a_week_is_taken_and_what_moved_waits_again() -> None:
    key = ("DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct")

    def waiting(days: float, usd_out: str = "4") -> dict[tuple[str, str], HeldPrice]:
        held = HeldPrice(
            usd=(Decimal("0.4"), Decimal(usd_out), None),
            day="",
            first_seen_at=NOW - days * DAY,
            verdict=Verdict.QUARANTINED,
        )
        return {key: held}

    assert verdict_of("0.4", "4", waiting=waiting(6.9))[0] is Verdict.QUARANTINED
    assert verdict_of("0.4", "4", waiting=waiting(7.0)) == (Verdict.VERIFIED, None)
    assert verdict_of("0.4", "4", waiting=waiting(9.0, "5"))[0] is Verdict.QUARANTINED


def test_where_most_prices_jump_at_once_nothing_is_believed() -> None:
    prices = [
        ListedPrice(
            provider=each.provider,
            model=each.model_name,
            usd_per_mtok_input=Decimal(str(each.usd_per_mtok_input)) * 10,
            usd_per_mtok_output=Decimal(str(each.usd_per_mtok_output)) * 10,
        )
        for each in all_token_prices()
        if each.provider == "DeepInfra" and each.model_id
    ]
    with pytest.raises(ParseError, match="have jumped at once: another unit"):
        judge(prices, {}, {}, all_token_prices(), model_ids(price.key for price in prices), NOW)


def test_only_models_of_the_catalogue_count_by_their_own_repository() -> None:
    keys = [
        ("DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct"),  # in the bundled list
        ("DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct-Turbo"),  # another format, and no name of it
        ("Groq", "Qwen/Qwen3-8B"),  # a repository of the catalogue
        ("Groq", "qwen3-8b"),  # an id of ours is no name that a provider's model has
        ("DeepSeek", "deepseek-chat"),  # bundled as no model of the catalogue
        ("DeepInfra", "Gryphe/MythoMax-L2-13b"),
    ]
    assert model_ids(keys) == {keys[0]: CODER, keys[2]: "qwen3-8b"}


def test_no_close_matches_are_looked_for_of_the_many_that_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def search(*arguments: object, **more: object) -> None:
        pytest.fail("a search through all names takes 60 ms")

    monkeypatch.setattr("planner.catalogues.models.close_matches", search)
    assert model_ids([("DeepInfra", "acme/Unheard-Of-9B"), ("DeepInfra", "acme/Unheard-Of-9B:Q4_K_M")]) == {}


# -- keeping ------------------------------------------------------------------------------------------


def kept(store: Store, now: datetime = NOW, **changed: Any) -> TokenReport:
    prices, problems = read_prices(page(listed(**changed)))
    return store.keep_token_prices(Brought(prices=tuple(prices), problems=tuple(problems)), now)


def coder_of(store: Store, now: datetime, day: date | None = None) -> Any:
    (found,) = (
        each
        for each in store.token_prices(now, day)
        if (each.provider, each.model_id) == ("DeepInfra", CODER)
    )
    return found


@pytest.fixture
def full(store: Store) -> Store:
    kept(store)
    return store


def test_a_run_keeps_what_belongs_to_the_catalogue(store: Store) -> None:
    before = store.revision()
    report = kept(store)
    assert (report.status, report.reason) == (RunStatus.OK, None)
    # MythoMax, Claude, Turbo and MiniMax M3 are no models of the catalogue.
    assert (report.prices, report.new, report.changed, report.gone) == (12, 12, 0, 0)
    assert report.verified + report.quarantined == 12
    # Qwen2.5 72B: 0.12 against 0.36 in the newer bundled list.
    held = {row["model"]: row["reason"] for row in store.held_token_prices()}
    assert held["Qwen/Qwen2.5-72B-Instruct"] == (
        "input at 0.12 USD a million tokens after 0.36 (bundled, 2026-11): more than 2 times"
    )
    assert store.revision() > before
    found = coder_of(store, NOW)
    assert (found.usd_per_mtok_input, found.usd_per_mtok_output, found.as_of) == (0.4, 1.6, "2026-12-01")
    assert found.source == f"LiteLLM price file, {LITELLM.pages['prices']}"


def test_the_same_list_again_moves_only_the_day(full: Store) -> None:
    report = kept(full, NOW + DAY)
    assert (report.new, report.changed, report.unchanged) == (0, 0, 12)
    assert coder_of(full, NOW + DAY).as_of == "2026-12-02"


def test_a_changed_price_takes_over_and_the_old_one_stands_for_its_days(full: Store) -> None:
    report = kept(full, NOW + 3 * DAY, **{KEY: at(3e-7, 1.2e-6)})
    assert (report.new, report.changed, report.unchanged) == (0, 1, 11)
    assert coder_of(full, NOW + 3 * DAY).usd_per_mtok_output == 1.2
    past = coder_of(full, NOW + 3 * DAY, date(2026, 12, 2))
    assert (past.usd_per_mtok_output, past.as_of) == (1.6, "2026-12-01")


def test_a_jump_waits_beside_the_price_in_force_and_takes_over_after_a_week(full: Store) -> None:
    jumped = {KEY: at(4e-7, 1.6e-5)}
    kept(full, NOW + DAY, **jumped)
    assert coder_of(full, NOW + DAY).usd_per_mtok_output == 1.6
    assert any(row["model_id"] == CODER for row in full.held_token_prices())
    kept(full, NOW + 7 * DAY, **jumped)
    assert coder_of(full, NOW + 7 * DAY).usd_per_mtok_output == 1.6
    report = kept(full, NOW + 8 * DAY, **jumped)
    assert report.changed == 1
    assert coder_of(full, NOW + 8 * DAY).usd_per_mtok_output == 16.0
    assert not any(row["model_id"] == CODER for row in full.held_token_prices())
    # What waited was not in force in that week.
    assert coder_of(full, NOW + 9 * DAY, date(2026, 12, 5)).usd_per_mtok_output == 1.6


def test_what_waited_and_went_back_is_forgotten(full: Store) -> None:
    kept(full, NOW + DAY, **{KEY: at(4e-7, 1.6e-5)})
    kept(full, NOW + 2 * DAY)
    assert not any(row["model_id"] == CODER for row in full.held_token_prices())
    # A later jump to the same figure waits for a week of its own.
    kept(full, NOW + 9 * DAY, **{KEY: at(4e-7, 1.6e-5)})
    assert coder_of(full, NOW + 9 * DAY).usd_per_mtok_output == 1.6


def test_a_price_that_left_the_list_is_gone_from_plans_and_may_come_back(full: Store) -> None:
    report = kept(full, NOW + DAY, **{KEY: None})
    assert report.gone == 1
    assert coder_of(full, NOW + DAY).is_gone
    assert not coder_of(full, NOW + DAY, date(2026, 12, 1)).is_gone
    planned = plan(Scenario(model=CODER), [], token_prices=full.token_prices(NOW + DAY))
    assert "deepinfra" not in {each.provider for each in planned.options if each.kind is Kind.API}
    assert any(
        entry.what == "API of DeepInfra" and "no longer listed" in entry.why for entry in planned.excluded
    )
    kept(full, NOW + 2 * DAY)
    assert not coder_of(full, NOW + 2 * DAY).is_gone


def test_a_price_that_comes_back_is_held_against_the_last_one_and_not_the_bundled_one(full: Store) -> None:
    kept(full, NOW + DAY, **{KEY: at(4e-7, 9e-7)})  # 1.60 bundled and before
    kept(full, NOW + 2 * DAY, **{KEY: None})
    kept(full, NOW + 3 * DAY, **{KEY: at(4e-7, 2.4e-6)})  # 2.7 times, and 1.5 times the bundled one
    (held,) = [row for row in full.held_token_prices() if row["model"] == coder_of(full, NOW).model_name]
    assert held["reason"] == "output at 2.4 USD a million tokens after 0.9 (2026-12-02): more than 2 times"
    kept(full, NOW + 4 * DAY, **{KEY: at(4e-7, 9e-7)})
    assert coder_of(full, NOW + 4 * DAY).usd_per_mtok_output == 0.9


def test_a_clock_that_went_back_a_little_leaves_the_newer_price_in_force(full: Store) -> None:
    kept(full, NOW + DAY, **{KEY: at(4e-7, 1.7e-6)})
    kept(full, NOW + DAY - timedelta(minutes=30), **{KEY: at(4e-7, 1.8e-6)})
    assert coder_of(full, NOW + DAY).usd_per_mtok_output == 1.8


def test_an_old_price_says_since_when_it_was_not_refreshed(full: Store) -> None:
    assert coder_of(full, NOW + 14 * DAY).notes == ""
    assert coder_of(full, NOW + 15 * DAY).notes == "not refreshed since 2026-12-01"


def test_a_list_that_cannot_be_read_changes_nothing(full: Store) -> None:
    revision = full.revision()
    report = full.keep_token_prices(Brought(reason="prices: not the list"), NOW + DAY)
    assert (report.status, report.line) == (
        RunStatus.FAILED,
        "no new prices of API tokens (prices: not the list); the last ones stand",
    )
    assert full.revision() == revision


# -- planning -----------------------------------------------------------------------------------------


def deepinfra(found: Any) -> Any:
    return next(each for each in found.options if each.kind is Kind.API and each.provider == "deepinfra")


def test_a_plan_takes_the_newer_price_and_names_its_day_and_source(full: Store) -> None:
    kept(full, NOW + DAY, **{KEY: at(3e-7, 1.2e-6)})
    prices = full.token_prices(NOW + DAY)
    option = deepinfra(plan(Scenario(model=CODER, tokens_per_month=1e6), [], token_prices=prices))
    # 8 million in at 0.30 and one million out at 1.20
    assert option.usd_per_month == pytest.approx(3.6)
    assert option.price.seen_at == "2026-12-02"
    assert "LiteLLM price file" in option.price.source_url
    before = deepinfra(plan(Scenario(model=CODER, tokens_per_month=1e6), []))
    assert before.usd_per_month == pytest.approx(4.8)
    assert before.price.seen_at == "2026-11"


def test_a_price_older_than_the_bundled_list_does_not_count(store: Store) -> None:
    kept(store, datetime(2026, 11, 29, tzinfo=UTC), **{KEY: at(3e-7, 1.2e-6)})
    option = deepinfra(
        plan(Scenario(model=CODER, tokens_per_month=1e6), [], token_prices=store.token_prices(NOW))
    )
    assert option.price.seen_at == "2026-11"


def test_other_providers_keep_their_bundled_prices(full: Store) -> None:
    found = plan(Scenario(model=CODER), [], token_prices=full.token_prices(NOW))
    assert {each.provider for each in found.options if each.kind is Kind.API} == {
        "deepinfra",
        "fireworksai",
        "openrouter",
    }


# -- a run --------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


def test_a_run_of_this_list_alone_asks_nobody_else(server: LoopbackServer, file: Path) -> None:
    server.add(PATH, listed())
    settings = Settings(database_url=f"sqlite:///{file}", base_urls=server.base_urls("litellm", "vultr"))
    with Store.open(settings.database_url) as store, Client(base_urls=settings.base_urls) as client:
        report = runs.run(["litellm"], store, settings, client, NOW)
        assert coder_of(store, NOW).usd_per_mtok_output == 1.6
    assert {one.path for one in server.received} == {PATH}
    assert (report.exit_code, report.providers) == (0, ())
    document = report.to_document()["token_prices"]
    assert isinstance(document, dict)
    assert (document["status"], document["prices"], document["url"]) == ("ok", 12, LITELLM.pages["prices"])


def test_a_list_that_does_not_answer_fails_a_run_of_it_alone(server: LoopbackServer, file: Path) -> None:
    server.add(PATH, status=404)
    settings = Settings(database_url=f"sqlite:///{file}", base_urls=server.base_urls("litellm"))
    with Store.open(settings.database_url) as store, Client(base_urls=settings.base_urls) as client:
        report = runs.run(["litellm"], store, settings, client, NOW)
        assert store.token_prices(NOW) == ()
    assert report.exit_code == 3
    assert report.token_prices is not None
    assert report.token_prices.line.startswith("no new prices of API tokens (")


class Meeting:
    """Answers a provider once the list was asked for too, and the list once a provider was."""

    def __init__(self, error: Exception) -> None:
        self.asked = {"litellm": threading.Event(), "vultr": threading.Event()}
        self.error = error

    def fetch(self, request: Request, provider: Site) -> Page:
        self.asked[provider.name].set()
        other = self.asked["vultr" if provider.name == "litellm" else "litellm"]
        if not other.wait(20):
            raise FetchError("nobody else was asked meanwhile")
        raise self.error

    def settle(self, provider: Site, *, is_read: bool) -> None:
        pass


@pytest.mark.parametrize("error", [FetchError("met"), RuntimeError("met\ntwice")])
def test_the_list_is_asked_for_beside_the_providers_and_each_fails_alone(
    file: Path, error: Exception
) -> None:
    settings = Settings(database_url=f"sqlite:///{file}")
    with Store.open(settings.database_url) as store:
        report = runs.run(["litellm", "vultr"], store, settings, Meeting(error), NOW)
    assert report.token_prices is not None
    said = {report.token_prices.reason, report.providers[0].reason}
    assert said == (
        {"met"} if isinstance(error, FetchError) else {"a fault in its module: RuntimeError: met twice"}
    )


def test_a_list_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    class Hanging:
        def fetch(self, request: Request, provider: Site) -> Page:
            let_go.wait(60)
            raise FetchError("too late")

        def settle(self, provider: Site, *, is_read: bool) -> None:
            pass

    monkeypatch.setattr(tokenprices, "LIMIT_S", 0.2)
    assert tokenprices.Asking(Hanging()).brought() == Brought(reason="the list has not come")
    let_go.set()


# -- a list that moves as a whole ---------------------------------------------------------------------


def _scaled(factor: str, count: int) -> list[ListedPrice]:
    """The recorded list, the first of its prices multiplied."""
    prices = read_prices(page(listed()))[0]
    by = Decimal(factor)
    moved = [
        replace(
            price,
            usd_per_mtok_input=price.usd_per_mtok_input * by,
            usd_per_mtok_output=price.usd_per_mtok_output * by,
            usd_per_mtok_cached_input=None,
        )
        for price in prices[:count]
    ]
    return [*moved, *(replace(price, usd_per_mtok_cached_input=None) for price in prices[count:])]


def _days(prices: list[ListedPrice], *days: float) -> list[tuple[int, int]]:
    """How many prices are in force and wait after each run, after one that knew them as recorded."""
    with Store.in_memory(snapshot=False) as store:
        store.keep_token_prices(Brought(prices=tuple(_scaled("1", 0))), NOW)
        found = []
        for day in days:
            report = store.keep_token_prices(Brought(prices=tuple(prices)), NOW + day * DAY)
            found.append((report.verified, report.quarantined))
        return found


@pytest.mark.parametrize("factor", ["1.9", "0.6", "1.1172"])
def test_a_list_that_moves_as_a_whole_waits_until_it_was_seen_on_three_days(factor: str) -> None:
    moved = _scaled(factor, 16)
    first, *_, last = _days(moved, 1, 1.2, 1.4, 2, 3)
    total = sum(first)
    assert total > 8
    assert first == (0, total)
    assert _days(moved, 1, 1.2, 1.4, 2)[-1] == (0, total)  # two days, four runs
    assert last[0] >= total - 1  # one is new at its provider, and far from all others


def test_a_few_prices_that_move_together_are_taken_at_once() -> None:
    ((verified, waiting),) = _days(_scaled("1.9", 4), 1)
    assert (waiting, verified > 8) == (0, True)
