"""Addresses: what may be shown of one, which are on this machine, which stand in for a provider's own."""

import ipaddress
import re
from collections.abc import Collection, Iterable
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from pricing.errors import SettingsError

# Query parameters that carry credentials wherever they occur.
_SECRET_PARAMETERS = frozenset({"key", "api_key", "apikey", "token", "access_token", "secret", "signature"})


# A text this long is masked wherever it stands. A shorter one, which no provider hands out, is masked only
# where it stands by itself: else one letter typed for a key would blank that letter in every message.
LONG_SECRET = 8


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text with every secret in it masked, the longest first."""
    for secret in sorted({secret for secret in secrets if secret}, key=len, reverse=True):
        if len(secret) >= LONG_SECRET:
            text = text.replace(secret, "***")
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


def mirror(name: str, url: str) -> SplitResult:
    """
    Return the parts of the address that stands in for all hosts of a provider.

    Raises:
        SettingsError: if it is not one, or plain http to anywhere but this machine.
    """
    variable = f"BREAKEVEN_{name.upper()}_BASE_URL"
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"{variable}: {url!r} is not an address; give https://host/path") from error
    if not host or parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
        raise SettingsError(f"{variable}: {url!r} is not an address; give https://host/path")
    if parts.scheme == "http" and not is_loopback(host):
        raise SettingsError(
            f"{variable}: plain http is only for a loopback address, not for {host}; use https"
        )
    return parts


def destination(url: str, hosts: Collection[str], base: SplitResult | None) -> str:
    """
    Return the address to ask for one that a provider names: its own, or the same on the mirror.

    Args:
        url: As the provider, or a redirect of it, names it.
        hosts: That it may lead to.
        base: The mirror, where one stands in.

    Raises:
        ValueError: in words that fit after the address, if it leads anywhere else.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError("is not a usable address") from error
    if base is not None and (parts.scheme, parts.netloc) == (base.scheme, base.netloc):
        return url
    is_own = parts.scheme == "https" and host in hosts and port in {None, 443}
    if not is_own or parts.username is not None:
        raise ValueError(f"leads to {parts.scheme}://{host or ''}, which is none of this provider's hosts")
    if base is None:
        return url
    return urlunsplit((base.scheme, base.netloc, base.path.rstrip("/") + parts.path, parts.query, ""))


def asked_at(url: str, base: SplitResult | None) -> str:
    """
    Say where an address is asked: there, or at the host of the mirror that stands in for it.

    Of a mirror no path is named, which may hold a key, and no user; of neither a query.
    """
    parts = urlsplit(url)
    if base is None:
        return url.partition("?")[0]
    return f"{base.scheme}://{base.netloc.rpartition('@')[2]} (for {parts.hostname}{parts.path})"


def is_loopback(host: str) -> bool:
    """Whether a host name is this machine without asking any name server."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def public_url(url: str) -> str:
    """Return an address without credentials: no user part, and no parameter that carries a key."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if name.lower() not in _SECRET_PARAMETERS]
    query = parts.query if len(kept) == len(pairs) else urlencode(kept)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))
