"""Requests of a kubeconfig's user that impersonates, as with `kubectl --as`."""

from pathlib import Path
from typing import Any

import pytest

from kube.config import ConfigError, load_kubeconfig
from kube.credentials import Impersonation
from kube.http_transport import HttpTransport
from ports.clock import FakeClock, SystemClock
from ports.transport import Request
from tests.kube.servers import Peer, serving
from tests.kube.test_config import kubeconfig

_VIEWER = {
    "token": "t",
    "as": "viewer",
    "as-uid": "u-1",
    "as-groups": ["readers", "system:authenticated"],
    "as-user-extra": {"%ü": ["ä"], "example.com/Scope": ["a", "b"]},
}
_HEADERS = [
    "authorization: Bearer t",
    "Impersonate-User: viewer",
    "Impersonate-Uid: u-1",
    "Impersonate-Group: readers",
    "Impersonate-Group: system:authenticated",
    "Impersonate-Extra-%25%C3%BC: ä",
    "Impersonate-Extra-example.com%2FScope: a",
    "Impersonate-Extra-example.com%2FScope: b",
]


@pytest.mark.parametrize("watches", [False, True])
def test_every_request_carries_the_impersonation_headers(tmp_path: Path, watches: bool) -> None:
    """Headers, and the escaping of their keys, equal client-go's."""
    heads: list[str] = []

    def serve(peer: Peer) -> None:
        heads.append(peer.head())
        peer.answer(200, b"{}")

    clock, request = SystemClock(), Request("GET", "/api/v1/pods", timeout=5.0)
    with serving(serve) as server:
        config = load_kubeconfig(kubeconfig(tmp_path, _VIEWER, {"server": server.url}), clock)
        transport = HttpTransport(config, {}, clock)
        if watches:
            transport.stream(request, idle_timeout=5.0).close()
        else:
            transport.request(request)
        transport.close()

    sent = heads[0].encode("latin-1").decode().splitlines()
    assert _HEADERS == [line for line in sent if line.lower().startswith(("authorization", "impersonate"))]


@pytest.mark.parametrize("user", [{"as-uid": "u"}, {"as-groups": ["g"]}, {"as-user-extra": {"k": ["v"]}}])
def test_rejects_a_group_without_a_user(tmp_path: Path, clock: FakeClock, user: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"users\[u\]\.user: as-uid, as-groups and as-user-extra need `as`"):
        load_kubeconfig(kubeconfig(tmp_path, user), clock)


@pytest.mark.parametrize(
    "odd", [Impersonation("a\r\nX: b"), Impersonation("a", "\0"), Impersonation("a", extra={"k": ["\x7f"]})]
)
def test_rejects_values_that_a_header_cannot_contain_without_quoting_them(odd: Impersonation) -> None:
    with pytest.raises(ConfigError, match=r"^users\[u\]: as, as-uid, as-groups or as-user-extra holds characters"):
        odd.headers("users[u]")


def test_sends_no_headers_without_impersonation(tmp_path: Path, clock: FakeClock) -> None:
    assert () == load_kubeconfig(kubeconfig(tmp_path), clock).impersonation
