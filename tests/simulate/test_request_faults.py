"""FP4: what happens to single requests of the operator."""

import msgspec
import pytest

from ports.clock import FakeClock
from ports.transport import Request
from simulate.engine.calls import Call, Port, call
from simulate.engine.plan import Denied, Refused
from simulate.engine.request_faults import RequestFaults, refusal

_STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
_SECONDS = 60.0


def _patch(path: str) -> Call:
    return call("operator", 1, Port.KUBERNETES, Request("PATCH", path, {}, b"{}"))


def _delete(path: str) -> Call:
    return call("operator", 1, Port.DATA_PLANE, Request("DELETE", f"http://basic-pd.default:2379{path}"))


class _Denying:
    """The second write and similar ones are denied for a minute."""

    def __init__(self, denied: Call) -> None:
        self.clock = FakeClock()
        self._faults = RequestFaults([Denied(write=2, seconds=_SECONDS)], 1, self.clock.now)
        assert self._faults.of([("", 1)], denied) is None
        assert self._faults.of([("", 2)], denied) == Refused(at=0.0, code=403)

    def denies(self, asked: Call) -> bool:
        return self._faults.of([("", 3)], asked) is not None


_ROLL, _STORE = _patch(f"{_STATEFUL_SETS}/basic-pd"), _delete("/pd/api/v1/store/4")


@pytest.mark.parametrize(
    ("denied", "asked", "like"),
    [
        (_ROLL, _ROLL, True),
        (_ROLL, _patch(f"{_STATEFUL_SETS}/basic-tikv"), True),
        (_ROLL, _patch(f"{_STATEFUL_SETS}/basic-pd/status"), False),
        (_ROLL, _patch("/api/v1/namespaces/default/pods/basic-pd-0"), False),
        (_ROLL, call("operator", 1, Port.KUBERNETES, Request("GET", f"{_STATEFUL_SETS}/basic-pd")), False),
        (_STORE, _delete("/pd/api/v1/store/7"), True),
        (_STORE, _delete("/pd/api/v1/members/name/basic-pd-2"), False),
    ],
    ids=str,
)
@pytest.mark.rule("FP4")
def test_similar_writes_are_denied_with_a_denied_write(denied: Call, asked: Call, like: bool) -> None:
    assert like == _Denying(denied).denies(asked)


@pytest.mark.rule("FP4")
def test_a_denial_ends() -> None:
    denying = _Denying(_ROLL)
    denying.clock.step(_SECONDS)
    assert not denying.denies(_ROLL)


@pytest.mark.rule("FP4")
def test_a_denial_looks_like_an_answer_of_the_api_server() -> None:
    answer = refusal(Refused(at=0.0, code=403), _ROLL)
    assert (403, "Forbidden") == (answer.status, msgspec.json.decode(answer.body)["reason"])
