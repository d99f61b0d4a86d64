"""Servers listen as flags, configuration and defaults say, in this order."""

import pytest

from sandbox.dataplane.listening import Setting, ports, reachable_port
from sandbox.dataplane.processes import Launch

STATUS = Setting("status-addr", "server.status-addr", "0.0.0.0:20180")


def launch(config: str = "", flags: str = "") -> Launch:
    command = ("/tikv-server", "--config=/etc/tikv/tikv.toml", *flags.split())
    return Launch("ns", "tikv-0", "uid", "pingcap/tikv:v8.5.2", command, files={"/etc/tikv/tikv.toml": config})


@pytest.mark.parametrize(
    ("expected", "config", "flags"),
    [
        ({20180}, "", ""),
        ({20181}, '[server]\nstatus-addr = "0.0.0.0:20181"', ""),
        ({20181}, '[Server]\nStatus-Addr = "[::]:20181"', ""),
        (set(), '[server]\nstatus-addr = "127.0.0.1:20180"', ""),
        (set(), 'server.status-addr = "0.0.0.0:99999"', ""),
        (set(), "server.status-addr = 5", ""),
        ({20180}, '[server]\nstatus-addr = "127.0.0.1:20180"', "--status-addr=0.0.0.0:20180"),
        ({20182}, "", "--advertise-status-addr=a:1 --status-addr=0.0.0.0:20182"),
        ({20183}, "", "--status-addr 0.0.0.0:20183"),
        ({20184}, "", "--status-addr=0.0.0.0:1 --status-addr=0.0.0.0:20184"),
    ],
)
@pytest.mark.rule("R25")
def test_flags_win_over_the_configuration(expected: set[int], config: str, flags: str) -> None:
    assert expected == ports(launch(config, flags), (STATUS,))


@pytest.mark.parametrize(
    ("expected", "address"),
    [(2379, "http://0.0.0.0:2379"), (2379, "https://[::]:2379"), (None, "http://10.0.0.1:2379"), (4000, ":4000")],
)
@pytest.mark.rule("R25")
def test_only_ports_on_all_addresses_are_reachable(expected: int | None, address: str) -> None:
    assert expected == reachable_port(address)
