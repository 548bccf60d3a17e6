"""`models`, `gpus`, `quants`, `providers`: what the catalogues hold."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dashboard import tables
from dashboard.commands.base import Commands, Context, Output

if TYPE_CHECKING:
    from pricing.settings import Settings


def register(commands: Commands) -> None:
    """Add the four lists."""
    query = "only those whose names contain this"
    models = commands.add(
        "models",
        list_models,
        help="list the models of the catalogue",
        example="breakeven models qwen3-coder",
        more="A model is named by its id or by any of its aliases, Hugging Face repositories included.",
    )
    models.add_argument("query", metavar="QUERY", nargs="?", default="", help=query)
    gpus = commands.add(
        "gpus", list_gpus, help="list the GPUs and other devices", example="breakeven gpus h100"
    )
    gpus.add_argument("query", metavar="QUERY", nargs="?", default="", help=query)
    commands.add(
        "quants",
        list_quants,
        help="list the weight formats with their true bits per weight",
        example="breakeven quants --json",
    )
    commands.add(
        "providers",
        list_providers,
        help="list the price sources, and which of them need a key",
        example="breakeven providers",
        more="Nothing is sent anywhere but to the sources named here.",
    )


def list_models(arguments: argparse.Namespace, context: Context) -> Output:
    """List models whose id, name, family or an alias contains the query."""
    del context
    from planner.catalogue import to_document
    from planner.catalogues.models import all_models, model_aliases

    names = _by_target(all_models(), {alias.name: alias.model for alias in model_aliases().values()})
    found = [
        model
        for model in all_models().values()
        if _matches(arguments.query, [model.id, model.name, model.family, *names[model.id]])
    ]
    headers = ("id", "name", "parameters", "active", "layers", "context", "license", "released")
    rows = [
        (
            model.id,
            model.name,
            tables.params(model.main_params),
            tables.params(model.active_params),
            model.num_layers,
            tables.number(model.advertised_context or model.max_position_embeddings),
            tables.shortened(model.license, 24),
            model.release_date,
        )
        for model in found
    ]
    return _listing(
        "models",
        [{**to_document(model), "aliases": names[model.id]} for model in found],
        lambda: tables.table(headers, rows, left=(0, 1, 6, 7)),
        _nothing("model", arguments.query, list(all_models()), found),
    )


def list_gpus(arguments: argparse.Namespace, context: Context) -> Output:
    """List devices whose name, architecture or an alias contains the query."""
    del context
    from planner.catalogue import to_document
    from planner.catalogues.gpus import all_gpus, gpu_aliases

    names = _by_target(all_gpus(), {alias.name: alias.gpu for alias in gpu_aliases().values()})
    found = [
        gpu
        for gpu in all_gpus().values()
        if _matches(arguments.query, [gpu.name, gpu.architecture or "", *names[gpu.name]])
    ]
    headers = (
        "GPU",
        "class",
        "memory GB",
        "bandwidth GB/s",
        "BF16 TFLOPS",
        "FP8 TFLOPS",
        "TDP W",
        "released",
    )
    rows = [
        (
            gpu.name,
            str(gpu.device_class),
            f"{gpu.memory_gb_vendor:g}",
            tables.number(gpu.bandwidth_gb_per_s),
            tables.number(gpu.bf16_dense_tflops),
            tables.number(gpu.fp8_dense_tflops),
            tables.number(gpu.tdp_w),
            gpu.release_date,
        )
        for gpu in found
    ]
    return _listing(
        "gpus",
        [{**to_document(gpu), "aliases": names[gpu.name]} for gpu in found],
        lambda: tables.paragraphs(
            tables.table(headers, rows, left=(0, 1, 7)),
            "Rates are dense peaks; empty: not known or not supported.",
        ),
        _nothing("GPU", arguments.query, list(all_gpus()), found),
    )


def list_quants(arguments: argparse.Namespace, context: Context) -> Output:
    """List weight formats."""
    del arguments, context
    from planner.catalogue import to_document
    from planner.catalogues.quants import all_quants

    headers = ("format", "family", "bits per weight", "computes in", "what it is")
    rows = [
        (quant.name, str(quant.family), f"{quant.bits_per_weight:g}", quant.compute_dtype, quant.title)
        for quant in all_quants().values()
    ]
    documents = [to_document(quant) for quant in all_quants().values()]
    return _listing("quants", documents, lambda: tables.table(headers, rows, left=(0, 1, 3, 4)))


def list_providers(arguments: argparse.Namespace, context: Context) -> Output:
    """List every provider: whether a refresh asks it, and whether a key is needed and set."""
    del arguments
    from dashboard.files.hub import HOST
    from pricing.money.ecb import BANK
    from pricing.registry import provider_infos, providers
    from pricing.settings import Settings
    from pricing.tokens.litellm import LITELLM

    settings, modules = Settings.from_environ(context.environ), providers()
    documents = []
    for info in provider_infos().values():
        module = modules.get(info.name)
        documents.append(
            {
                "name": info.name,
                "title": info.title,
                "kind": str(info.kind),
                "is_refreshed": module is not None,
                "needs_key": module is not None and module.requires_key,
                "key_variable": None if module is None else f"BREAKEVEN_{info.name.upper()}_API_KEY",
                "key_is_set": bool(settings.key_of(info.name)),
                "key_help": module.key_help if module is not None and module.key_help else None,
                "sources": list(info.sources),
                "home": info.home,
            }
        )
    documents.append(
        {
            "name": BANK.name,
            "title": BANK.title,
            "kind": "exchange rates",
            "is_refreshed": True,
            "needs_key": False,
            "key_variable": None,
            "key_is_set": False,
            "key_help": None,
            "sources": list(BANK.pages.values()),
            "home": None,
        }
    )
    documents.append(
        {
            "name": LITELLM.name,
            "title": LITELLM.title,
            "kind": "API token prices",
            "is_refreshed": True,
            "needs_key": False,
            "key_variable": None,
            "key_is_set": False,
            "key_help": None,
            "sources": list(LITELLM.pages.values()),
            "home": "https://github.com/BerriAI/litellm",
        }
    )
    headers = ("provider", "title", "kind", "prices", "key", "asks")
    rows = [
        (
            row["name"],
            row["title"],
            row["kind"],
            "refreshed" if row["is_refreshed"] else "bundled only",
            _key_state(row),
            ", ".join(dict.fromkeys(tables.source(url) or "" for url in row["sources"])),
        )
        for row in documents
    ]
    on_request = _hub(settings)
    output = _listing(
        "providers",
        documents,
        lambda: tables.paragraphs(
            tables.table(headers, rows, left=range(6)),
            f"Asked only where a MODEL is named hf:owner/name, never by a refresh: {HOST} "
            "(configuration, index and tensor headers of that model; from the file hosts that it names).",
        ),
    )
    return replace(output, document={**output.document, "on_request": [on_request]})


def _hub(settings: "Settings") -> Mapping[str, Any]:
    """Return the one host that is no price source, and is asked for files of models."""
    from dashboard.files.hub import HOST, NAME

    return {
        "name": NAME,
        "title": "Hugging Face hub",
        "when": "a MODEL is named hf:owner/name",
        "key_variable": f"BREAKEVEN_{NAME.upper()}_API_KEY",
        "key_is_set": bool(settings.key_of(NAME)),
        "sources": [HOST],
    }


def _key_state(row: Mapping[str, Any]) -> str | None:
    if row["key_is_set"]:
        return "set"
    if row["needs_key"]:
        return f"needed: {row['key_variable']}"
    return f"optional: {row['key_variable']}" if row["key_help"] else None


def _by_target(records: Mapping[str, object], aliases: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the aliases of each record."""
    names: dict[str, list[str]] = {name: [] for name in records}
    for alias, target in aliases.items():
        if alias != target and target in names:
            names[target].append(alias)
    return names


def _matches(query: str, names: Iterable[str]) -> bool:
    """Whether every word of the query stands in one of the names."""
    from planner.catalogue import matching

    names = list(names)
    return all(matching(word, names) for word in query.split())


def _nothing(kind: str, query: str, names: Sequence[str], found: Sequence[object]) -> tuple[str, ...]:
    """Say that nothing was found, and what comes close."""
    if found:
        return ()
    from planner.catalogue import close_matches

    matches = close_matches(query, names)
    hint = f"; close matches: {', '.join(matches)}" if matches else ""
    return (f"no {kind} contains {query!r}{hint}",)


def _listing(
    name: str, documents: Sequence[Mapping[str, Any]], text: Any, warnings: tuple[str, ...] = ()
) -> Output:
    return Output(
        document={"schema": f"breakeven.{name}/1", name: list(documents)},
        text=text if documents else "",
        warnings=warnings,
    )
