"""LiteLLM's list of what APIs charge for tokens: asked, and read strictly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Problem
from pricing.provider import Page, Request, Site

SOURCE = "LiteLLM price file"
# 1.6 MB in November 2026. Source: own choice.
MAX_BYTES = 16 * 2**20
DEADLINE_S = 60.0
# The list held 2,600 entries in November 2026; one cut short is not the list. Source: own choice.
FEWEST_ENTRIES = 500
_PER_MTOK = 1_000_000
# Of one token: more is no price, and may have more digits than can be multiplied. Source: own choice.
MOST_USD = 1_000_000
# What writes text; the rest draws, hears, speaks, ranks. Source: `mode` of the file's own sample_spec.
_MODES = frozenset({"chat", "completion", "responses"})
# Whose prices the bundled list takes from this file, by `litellm_provider`: name there, what stands before
# a model's own name in a key, the longest first. Source: planner/data/api_prices.csv.
PROVIDERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "anthropic": ("Anthropic", ""),
        "baseten": ("Baseten", "baseten/"),
        "cerebras": ("Cerebras", "cerebras/"),
        "dashscope": ("Alibaba Cloud Model Studio", "dashscope/"),
        "deepinfra": ("DeepInfra", "deepinfra/"),
        "deepseek": ("DeepSeek", "deepseek/"),
        "fireworks_ai": ("Fireworks AI", "fireworks_ai/accounts/fireworks/models/", "fireworks_ai/"),
        "gemini": ("Google Gemini API", "gemini/"),
        "groq": ("Groq", "groq/"),
        "minimax": ("MiniMax", "minimax/"),
        "mistral": ("Mistral AI", "mistral/"),
        "moonshot": ("Moonshot AI", "moonshot/"),
        "nebius": ("Nebius", "nebius/"),
        "novita": ("Novita AI", "novita/"),
        "nscale": ("Nscale", "nscale/"),
        "openai": ("OpenAI", ""),
        "sambanova": ("SambaNova", "sambanova/"),
        "together_ai": ("Together AI", "together_ai/"),
        "wandb": ("Weights & Biases Inference", "wandb/"),
        "xai": ("xAI", "xai/"),
        "zai": ("Z.ai", "zai/"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrice:
    """What the list says of one model at one provider; USD a million tokens."""

    provider: str  # as the bundled list writes it
    model: str  # as the provider writes it
    usd_per_mtok_input: Decimal
    usd_per_mtok_output: Decimal
    usd_per_mtok_cached_input: Decimal | None = None
    notes: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What it is the price of."""
        return self.provider, self.model

    @property
    def usd(self) -> tuple[Decimal, Decimal, Decimal | None]:
        """Input, output, cached input. [USD/Mtok]"""
        return self.usd_per_mtok_input, self.usd_per_mtok_output, self.usd_per_mtok_cached_input


class LiteLlm(Site):
    """One JSON file that its users keep up, prices by the token; free of charge and of keys."""

    name = "litellm"
    title = SOURCE
    pages: ClassVar = {
        "prices": "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
    }

    def request(self) -> Request:
        """Ask for the list."""
        return Request(page="prices", url=self.pages["prices"], max_bytes=MAX_BYTES, deadline_s=DEADLINE_S)


LITELLM = LiteLlm()


def read_prices(page: Page) -> tuple[list[ListedPrice], list[Problem]]:
    """
    Read the prices of the providers that the bundled list takes from this file.

    Returns:
        A price for each model whose tokens have one, a problem for each that is not a price.

    Raises:
        ParseError: if it is not the list, or cut short.
    """
    entries = page.json()
    if not isinstance(entries, dict) or "sample_spec" not in entries:
        raise ParseError("prices: not the list, it has no sample_spec", page=page.key)
    if len(entries) < FEWEST_ENTRIES:
        raise ParseError(
            f"prices: {len(entries)} entries, fewer than {FEWEST_ENTRIES}: cut short?", page=page.key
        )
    prices: dict[tuple[str, str], ListedPrice] = {}
    problems: list[Problem] = []
    for key, entry, provider, model in _of_known_providers(entries):
        try:
            price = _price(provider, model, entry)
        except ValueError as error:
            problems.append(Problem(what=key, why=str(error)))
            continue
        if prices.setdefault(price.key, price) != price:
            problems.append(Problem(what=key, why=f"a second price of {model} at {provider}"))
    return list(prices.values()), problems


def _of_known_providers(entries: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """Yield key, entry, provider and model of what writes text at a provider of the bundled list."""
    for key, entry in entries.items():
        if not isinstance(entry, dict) or entry.get("mode") not in _MODES:
            continue
        known = PROVIDERS.get(str(entry.get("litellm_provider")))
        if known is None:
            continue
        provider, *prefixes = known
        prefix = next((each for each in prefixes if key.startswith(each)), None)
        model = key if prefix is None else key.removeprefix(prefix)
        # Other keys of a provider are sizes ("together-ai-up-to-4b"), regions, accounts, fine-tuned models.
        is_named = prefix is not None and model and not model.startswith("accounts/")
        if is_named and (prefix or not set(model) & {"/", ":"}):
            yield key, entry, provider, model


def _price(provider: str, model: str, entry: Mapping[str, Any]) -> ListedPrice:
    """Return the price of an entry; zero means not known, or a price by tiers, and never free."""
    usd_in = _usd_per_mtok(entry, "input_cost_per_token")
    usd_out = _usd_per_mtok(entry, "output_cost_per_token")
    if not usd_in or not usd_out:
        raise ValueError("no price of input or output tokens: 0 or absent, which is not free")
    cached = _usd_per_mtok(entry, "cache_read_input_token_cost")
    if cached and cached > usd_in:
        raise ValueError(f"cached input at {cached:f} USD costs more than input at {usd_in:f}")
    is_tiered = any("_above_" in name for name in entry) or "tiered_pricing" in entry
    return ListedPrice(
        provider=provider,
        model=model,
        usd_per_mtok_input=usd_in,
        usd_per_mtok_output=usd_out,
        usd_per_mtok_cached_input=cached or None,
        notes="long prompts cost more" if is_tiered else "",
    )


def _usd_per_mtok(entry: Mapping[str, Any], name: str) -> Decimal | None:
    """Return a price by the token as one by the million, exactly."""
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"{name} is {value!r}, not a number")
    price = Decimal(value)
    if not price.is_finite() or not 0 <= price < MOST_USD:
        raise ValueError(f"{name} is {price:.6g}")
    usd = price * _PER_MTOK
    return usd.normalize()
