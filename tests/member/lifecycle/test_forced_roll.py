"""When a silent single member is restarted all the same (docs/rules/silence.md)."""

from types import SimpleNamespace
from typing import cast

import pytest

from dataplane.errors import ApiError, DataPlaneError, Unavailable
from kube.objects import Json
from member.context import Listers
from member.evidence import Evidence
from member.lifecycle.quorum import forced
from member.outcome import Failed
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TransportError
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.reconciling import as_object, context

_FORCE = {"tidb.pingcap.com/force-upgrade": "true"}


def _silent(cause: type[TransportError]) -> DataPlaneError:
    return Unavailable("GET", "http://demo-pd-0", "no answer", cause("GET", "http://demo-pd-0", "as scripted"))


_HEARD: dict[str, DataPlaneError | None] = {
    "nothing listens": _silent(ConnectionRefused),
    "no answer": _silent(RequestTimeout),
    "connection lost": _silent(ConnectionLost),
    "503": Unavailable("GET", "http://demo-pd-0", "error response 503"),
    "500": ApiError("GET", "http://demo-pd-0", 500),
    "it answers": None,
}


@pytest.mark.parametrize("heard", _HEARD)
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("cut_off", [True, False])
@pytest.mark.parametrize("switches", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_a_member_that_may_serve_is_restarted_only_on_request(
    heard: str, alone: bool, cut_off: bool, switches: bool, asked: bool
) -> None:
    tc = cluster(annotations=_FORCE if asked else {}, tlsCluster={"enabled": switches})
    ctx = context(FakeApi(), tc)
    ctx.observations["pd"] = Failed("PDUnreachable", "no answer in time")
    ctx.listers = cast("Listers", SimpleNamespace(nodes=None))
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status: Json = {"containerStatuses": [{"name": "pd", "state": state}]}
    if cut_off:
        status |= {"phase": "Unknown"}
    spec: Json = {"containers": [], "nodeName": "n", "volumes": []}
    ctx.pods["pd"] = [as_object({"metadata": {"name": "demo-pd-0"}, "spec": spec, "status": status})]

    def ask(_: str) -> None:
        if error := _HEARD[heard]:
            raise error

    expected = asked or (alone and not cut_off and (switches or heard == "nothing listens"))
    assert expected == isinstance(forced(ctx, "pd", alone=alone, ask=ask), Evidence)
