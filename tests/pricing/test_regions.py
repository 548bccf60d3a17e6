"""One spelling for each region."""

import pytest

from pricing.parsing.regions import normalise_region, region_key


@pytest.mark.parametrize(
    ("provider", "region", "expected"),
    [
        ("digitalocean", None, None),
        ("digitalocean", "", None),
        ("runpod", "-", None),
        ("runpod", "global", None),
        ("lambda", " Global ", None),
        ("digitalocean", "NYC1", "nyc1"),
        ("aws", "us-east-1", "us-east-1"),
        ("vastai", "US", "US"),
        ("vastai", ", US", "US"),
        ("vastai", "Washington, US", "US"),
        ("vastai", "Czechia, CZ", "CZ"),
        ("vastai", "", None),
        ("lium", "us", "US"),
        ("verda", "EU (Nordic)", "EU (Nordic)"),
        ("tensordock", "Dallas,  Texas, United States", "Dallas, Texas, United States"),
    ],
)
def test_region_has_one_spelling(provider: str, region: str | None, expected: str | None) -> None:
    assert normalise_region(provider, region) == expected
    assert normalise_region(provider, expected) == expected


def test_capitals_do_not_make_another_region() -> None:
    assert region_key("verda", "eu (nordic)") == region_key("verda", "EU (Nordic)") == "eu (nordic)"
    assert region_key("runpod", "global") == region_key("runpod", None) == ""
