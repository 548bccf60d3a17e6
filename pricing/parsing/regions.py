"""One spelling for each provider's regions, so that the same place under two names is one place."""

# What sources write where an offer is not bound to a place; a blank cell and a dash are read the same.
EVERYWHERE = frozenset(
    {
        "",
        "-",
        "--",
        "–",
        "—",
        "all",
        "all regions",
        "any",
        "anywhere",
        "everywhere",
        "global",
        "n/a",
        "none",
        "null",
        "unknown",
        "world",
        "worldwide",
    }
)
# Marketplaces that write a free text ending in the country ("Washington, US", ", US"); compared by country.
ENDS_IN_COUNTRY = frozenset({"vastai"})


def normalise_region(provider: str, region: str | None) -> str | None:
    """
    Return the one spelling of a provider's region, or None where the offer is not bound to one.

    Country codes are upper case, other codes lower case; a name in words keeps its capitals.
    """
    text = " ".join((region or "").split()).strip(" ,;")
    if text.lower() in EVERYWHERE:
        return None
    if provider in ENDS_IN_COUNTRY:
        text = text.rsplit(",", 1)[-1].strip()
    if " " in text:
        return text
    return text.upper() if len(text) == 2 and text.isalpha() else text.lower()


def region_key(provider: str, region: str | None) -> str:
    """Return what two spellings of one region have in common; blank where it is not bound to one."""
    return (normalise_region(provider, region) or "").casefold()


def is_same_place(one: str, other: str) -> bool:
    """Whether two region keys can mean one place: the same, or one is not bound to any."""
    return one == other or not one or not other
