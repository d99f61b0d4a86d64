"""Requests of a kubeconfig's user that acts as somebody else, as `kubectl --as` does."""

from pathlib import Path
from typing import Any

import pytest

from kube.config import ConfigError, load_kubeconfig
from kube.http_transport import HttpTransport
from kube.impersonation import Impersonation
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
def test_every_request_says_whom_it_acts_as(tmp_path: Path, watches: bool) -> None:
    """Headers, and how keys are escaped in them, are those of client-go's round tripper."""
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
def test_a_group_without_a_user_is_refused(tmp_path: Path, clock: FakeClock, user: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"users\[u\]\.user: as-uid, as-groups and as-user-extra need `as`"):
        load_kubeconfig(kubeconfig(tmp_path, user), clock)


@pytest.mark.parametrize(
    "odd", [Impersonation("a\r\nX: b"), Impersonation("a", "\0"), Impersonation("a", extra={"k": ["\x7f"]})]
)
def test_what_no_header_can_carry_is_refused_and_not_quoted(odd: Impersonation) -> None:
    with pytest.raises(ConfigError, match=r"^users\[u\]: as, as-uid, as-groups or as-user-extra holds characters"):
        odd.headers("users[u]")


def test_who_acts_as_nobody_says_nothing(tmp_path: Path, clock: FakeClock) -> None:
    assert () == load_kubeconfig(kubeconfig(tmp_path), clock).impersonation
