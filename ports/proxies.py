"""The choice of a proxy for a request, for both Kubernetes and data plane.

It follows the rules of `requests`: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` in either case, lower case
first; `NO_PROXY` lists names (with their subdomains), addresses, networks in CIDR form, or `*`. Loopback is always
reached directly.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

_SOCKS_SCHEMES = ("socks5", "socks5h")
PROXY_SCHEMES = ("http", "https", *_SOCKS_SCHEMES)


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The URL of the proxy for `url`, including its scheme; None for a direct connection."""
    target = urlsplit(url)
    proxy = _variable(environ, f"{target.scheme}_proxy") or _variable(environ, "all_proxy")
    if not proxy or not target.hostname:
        return None
    if is_loopback(target.hostname) or _is_excluded(target, environ.get("no_proxy") or environ.get("NO_PROXY", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_socks(proxy: str) -> bool:
    """True if the URL of a proxy has a scheme of SOCKS5."""
    return proxy.partition("://")[0].lower() in _SOCKS_SCHEMES


def is_loopback(host: str) -> bool:
    """True if `host`, a name or an address without brackets, is always this machine."""
    address = _address(host)
    if address is not None:
        return address.is_loopback
    name = host.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def _variable(environ: Mapping[str, str], name: str) -> str:
    if name in environ:
        return environ[name].strip()
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        # under CGI a client can set HTTP_PROXY with a `Proxy:` header
        return ""
    return environ.get(name.upper(), "").strip()


def _is_excluded(target: SplitResult, no_proxy: str) -> bool:
    host = (target.hostname or "").rstrip(".")
    entries = [entry for entry in no_proxy.lower().replace(" ", "").split(",") if entry]
    address = _address(host)
    if "*" in entries:
        return True
    if address is not None:
        return any(_contains(entry, address) for entry in entries)
    port = _port(target)
    return any(_is_within(entry, host, port) for entry in entries)


def _contains(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


def _is_within(entry: str, host: str, port: int | None) -> bool:
    name, colon, wanted_port = entry.lstrip(".").partition(":")
    if colon and wanted_port != str(port):
        return False
    return host == name or host.endswith(f".{name}")


def _port(target: SplitResult) -> int | None:
    return target.port or {"http": 80, "https": 443}.get(target.scheme)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
