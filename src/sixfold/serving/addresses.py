"""Where a request comes from and what it is addressed to: trusted proxies, hosts that are served, the URL prefix."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import Scope

from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError

LOCAL_NAMES = ("localhost", "localhost.localdomain")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Addresses:
    """Resolves the addresses of requests by the settings of a server."""

    def __init__(self, options: ServeOptions) -> None:
        self._proxies = [ipaddress.ip_network(each, strict=False) for each in options.trusted_proxies]
        self._hosts = {each.lower().rstrip(".") for each in options.hosts}
        own_name = socket.gethostname().lower()
        self._hosts |= {options.host.lower(), own_name, f"{own_name}.local", *LOCAL_NAMES}
        self.prefix = f"/{options.url_prefix.strip('/')}" if options.url_prefix.strip("/") else ""

    def resolve(self, scope: Scope) -> Scope:
        """Return the request as the client sent it to the outermost trusted proxy.

        Raise HttpError 421 for a host that this server does not serve, and 404 for a path outside the prefix.
        """
        resolved = {**scope, **self._forwarded(scope)}
        self._check_host(header(resolved, b"host"))
        path = resolved["path"]
        if self.prefix:
            if path != self.prefix and not path.startswith(f"{self.prefix}/"):
                raise HttpError(404, "Not Found", f"everything on this server is below {self.prefix}/")
            resolved["root_path"] = self.prefix
        return resolved

    def redirect(self, scope: Scope) -> str | None:
        """Return where the page is if a request is for the root of the host, or for the prefix without its slash."""
        if not self.prefix or scope["method"] != "GET" or scope["path"] not in ("/", self.prefix):
            return None
        query = scope["query_string"].decode("latin-1")
        return f"{self.prefix}/{'?' if query else ''}{query}"

    def _forwarded(self, scope: Scope) -> Scope:
        """Return the client, scheme and host that a trusted proxy reports. The headers of other clients are ignored."""
        client = scope.get("client")
        if not self._proxies or client is None or not self._is_trusted(client[0]):
            return {}
        changes: Scope = {}
        address = client[0]
        for entry in reversed(header_list(scope, b"x-forwarded-for")):
            if (parsed := parse_address(entry)) is None:
                break
            address = str(parsed)
            if not self._is_trusted(address):
                break
        changes["client"] = (address, client[1] if address == client[0] else 0)
        scheme = header_list(scope, b"x-forwarded-proto")[-1:]
        if scheme in (["http"], ["https"]):
            changes["scheme"] = scheme[0]
        if host := header_list(scope, b"x-forwarded-host")[-1:]:
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            changes["headers"] = [(b"host", host[0].encode("latin-1", "replace")), *others]
        return changes

    def _is_trusted(self, text: str) -> bool:
        address = parse_address(text)
        return address is not None and any(address in network for network in self._proxies)

    def _check_host(self, host: str) -> None:
        """Raise HttpError 421 unless a host is an IP address, a name of this machine, or one of the setting `hosts`.

        A page of another site that makes its own name resolve to this server's address (DNS rebinding) sends that
        name. A request to an IP address cannot come from such a page. Without a name there was no browser.
        """
        name = host_name(host)
        if not host or (name and (parse_address(name) or "*" in self._hosts or self._is_served(name))):
            return
        raise HttpError(
            421, f"this server does not serve the host {host[:80]!r}", "the setting `hosts` names the hosts it serves"
        )

    def _is_served(self, name: str) -> bool:
        name = name.rstrip(".")
        wildcards = (each[1:] for each in self._hosts if each.startswith("*."))
        return name in self._hosts or any(name.endswith(suffix) for suffix in wildcards)


def route_path(scope: Scope) -> str:
    """Return the path of a request below the URL prefix."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def header(scope: Scope, name: bytes) -> str:
    """Return the first header of this name, or an empty string."""
    values: Iterable[bytes] = (value for key, value in scope["headers"] if key == name)
    return next(iter(values), b"").decode("latin-1")


def header_list(scope: Scope, name: bytes) -> list[str]:
    """Return the values of a header that is a list with commas and may occur several times."""
    values = ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == name)
    return [value.strip() for value in values.split(",") if value.strip()]


def host_name(host: str) -> str:
    """Return the name of a Host header in lower case, without its port; it is empty if the header makes no sense."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises ValueError if it is no number
    except ValueError:
        return ""
    is_plain = parts.netloc == host and "@" not in host
    return (parts.hostname or "") if is_plain else ""


def parse_address(text: str) -> Address | None:
    """Return an IP address, with or without brackets and a port, or None. IPv4 inside IPv6 becomes plain IPv4."""
    for candidate in (text, host_name(text)):
        try:
            address = ipaddress.ip_address(candidate)
        except ValueError:
            continue
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return mapped or address
    return None


def is_cross_site(scope: Scope, allowed_origins: Iterable[str]) -> bool:
    """Return whether a browser sent a request for a page of another site, which is not one of the allowed origins.

    Browsers say so in Sec-Fetch-Site, or else name the page's origin. Programs send neither.
    """
    origin, site = header(scope, b"origin"), header(scope, b"sec-fetch-site")
    if origin in (allowed := set(allowed_origins)) or (origin and "*" in allowed):
        return False
    if site:
        return site not in ("same-origin", "none")
    return bool(origin) and urlsplit(origin).netloc.lower() != header(scope, b"host").lower()
