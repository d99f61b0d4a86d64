"""The settings that say where servers listen, and the values of them that change nothing (R25).

Data of the table in `apis.components`; `apis.validation.listening` refuses all other values.
"""

from collections.abc import Callable, Mapping

Accepted = tuple[object, ...]
"""The values that equal the default; messages name the first."""

ListenSettings = Mapping[str, Callable[[Mapping[str, int]], Accepted]]
"""The accepted values by dotted path in a configuration file, given the ports of the component."""

_EVERYWHERE = ("0.0.0.0", "::", "[::]")


def _hosts(_: Mapping[str, int]) -> Accepted:
    return (*_EVERYWHERE, "")


def _absent(_: Mapping[str, int]) -> Accepted:
    return ("",)


def _true(_: Mapping[str, int]) -> Accepted:
    return (True,)


def _port(name: str) -> Callable[[Mapping[str, int]], Accepted]:
    return lambda ports: (ports[name],)


def _address(name: str) -> Callable[[Mapping[str, int]], Accepted]:
    return lambda ports: tuple(f"{host}:{ports[name]}" for host in ("0.0.0.0", "[::]"))


def _url(name: str) -> Callable[[Mapping[str, int]], Accepted]:
    address = _address(name)
    return lambda ports: tuple(f"{scheme}://{each}" for scheme in ("http", "https") for each in address(ports))


OF_PD: ListenSettings = {
    "client-urls": _url("client"),
    "peer-urls": _url("peer"),
    "advertise-client-urls": _absent,
    "advertise-peer-urls": _absent,
}
OF_TIKV: ListenSettings = {
    "server.addr": _address("server"),
    "server.status-addr": _address("status"),
    "server.advertise-addr": _absent,
    "server.advertise-status-addr": _absent,
}
OF_TIPROXY: ListenSettings = {
    "proxy.addr": _address("sql"),
    "api.addr": _address("api"),
}
OF_TIFLASH: ListenSettings = {
    "flash.service_addr": _address("tiflash"),
    "flash.proxy.addr": _address("proxy"),
    "server.status-addr": _address("status"),
}
"""The last of these settings is in the configuration of the proxy."""
OF_PUMP: ListenSettings = {"addr": _address("pump"), "advertise-addr": _absent}
OF_TICDC: ListenSettings = {"addr": _address("ticdc"), "advertise-addr": _absent}
OF_TIDB: ListenSettings = {
    "host": _hosts,
    "port": _port("server"),
    "advertise-address": _absent,
    "status.report-status": _true,
    "status.status-host": _hosts,
    "status.status-port": _port("status"),
}
