"""Only known modules of the operator open connections, and only the rules of addresses make an address to dial.

A new place that dials an address of a spec or of a server's answer fails here: it must use `dataplane.clients`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_ROOMS = ("apis", "controller_manager", "controllers", "dataplane", "discovery", "informers", "kube", "member", "meta")
"""All code of the operator and of Discovery, except the ports that these rooms get as arguments."""

_DIALLING = re.compile(
    r"^\s*(?:import|from)\s+(?:requests|urllib3|socket|http\.client|urllib\.request|pymysql|asyncio|aiohttp)\b"
    r"|import_module\(\"grpc\"\)",
    re.MULTILINE,
)
_ADDRESS = re.compile(r"(?<![\w\"])Address\(")
_LOGIN = re.compile(r"(?<![\w\"])SqlLogin\(")

_DIALS = {
    "kube/http_transport.py": "the API server of the kubeconfig",
    "kube/connections.py": "the same",
    "kube/pools.py": "the same",
    "dataplane/http_transport.py": "the bounded client of data planes",
    "dataplane/grpc_calls.py": "the bounded client of TiKV's log backup service",
    "dataplane/mysql.py": "the way to TiDB's SQL port",
    "dataplane/mysql_connection.py": "the bounded client of TiDB's SQL port",
    "controller_manager/check.py": "the operator's own Service, to check an installation",
    "controller_manager/manager.py": "nothing: the name of the host",
    "controller_manager/shutdown.py": "nothing: a pair of sockets for signals",
}
"""The modules that import a way to open connections, and what each reaches."""


@pytest.fixture(scope="module")
def modules() -> Mapping[str, str]:
    """The text of each module, by its path."""
    paths = [path for room in _ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}


def test_only_known_modules_open_connections(modules: Mapping[str, str]) -> None:
    assert set(_DIALS) == {path for path, text in modules.items() if _DIALLING.search(text)}


def test_only_the_rules_of_addresses_make_an_address(modules: Mapping[str, str]) -> None:
    assert ["dataplane/addresses.py"] == [path for path, text in modules.items() if _ADDRESS.search(text)]


def test_sql_goes_to_a_service_of_the_cluster_only(modules: Mapping[str, str]) -> None:
    """`member.api_clients` takes the host of its only login from the cluster's address book."""
    assert ["member/api_clients.py"] == [path for path, text in modules.items() if _LOGIN.search(text)]


@pytest.mark.parametrize(
    "line", ["import socket", "    from urllib3 import PoolManager", "from urllib.request import a"]
)
def test_detects_a_module_that_dials(line: str) -> None:
    assert _DIALLING.search(f"def call(spec):\n{line}\n")
