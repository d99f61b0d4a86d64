"""F12: which pods are away because of our own restart, and which were lost before it or are since."""

import msgspec
import pytest

from apis.times import parse_time
from kube.objects import Json, Object
from member.failover.witnesses import _by_our_own_restart

_ROLLING: Json = {"status": {"currentRevision": "old", "updateRevision": "new"}}
_AT_REST: Json = {"status": {"currentRevision": "new", "updateRevision": "new"}}
_MADE = "2026-01-01T00:10:00Z"


def _pod(revision: str, **meta: str) -> Object:
    labels = {"controller-revision-hash": revision}
    return Object(msgspec.json.encode({"metadata": {"name": "p", "labels": labels, "creationTimestamp": _MADE} | meta}))


@pytest.mark.parametrize(
    ("body", "pod", "ill_since", "expected"),
    [
        pytest.param(_ROLLING, _pod("new"), "2026-01-01T00:09:30Z", True, id="it was well until its restart"),
        pytest.param(_ROLLING, _pod("new"), None, True, id="nobody knows since when"),
        pytest.param(_ROLLING, _pod("new"), "2026-01-01T00:07:00Z", False, id="it was lost before"),
        pytest.param(_ROLLING, _pod("new"), "2026-01-01T00:11:00Z", False, id="it served in between"),
        pytest.param(_ROLLING, _pod("older"), "2026-01-01T00:09:30Z", True, id="an earlier roll has made it"),
        pytest.param(_ROLLING, _pod("old"), "2026-01-01T00:09:30Z", False, id="no roll has come to it"),
        pytest.param(
            _ROLLING, _pod("old", deletionTimestamp="2026-01-01T00:20:00Z"), "2026-01-01T00:19:45Z", True, id="it ends"
        ),
        pytest.param(_ROLLING, None, None, True, id="it is just away"),
        pytest.param(
            {"status": {"currentRevision": "new", "updateRevision": "new"}}, _pod("new"), None, False, id="rest"
        ),
        pytest.param({}, None, None, False, id="no StatefulSet"),
    ],
)
@pytest.mark.rule("F12")
def test_a_pod_is_away_because_of_our_own_restart(
    body: Json, pod: Object | None, ill_since: str | None, expected: bool
) -> None:
    assert expected is _by_our_own_restart(body, pod, parse_time(ill_since or ""))
