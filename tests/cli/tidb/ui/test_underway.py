"""The change that is under way: steps of the past from pods and events, the rest from a rehearsal in the background."""

import queue
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from cli.failures import Failure
from cli.tidb.pods import ClusterPod
from cli.tidb.ui.rehearsals import IN_LOG, Rehearsals
from cli.tidb.ui.templating import templates
from cli.tidb.ui.underway import Change, Outlook, Outlooks, Past, change_of, change_view
from kube.client import Client
from kube.objects import Json
from ports.clock import FakeClock
from rehearsal.forecast import Forecast, Step
from tests.cli.tidb.objects import cluster, condition, facts, pod
from tests.cli.tidb.ui.pages import open_page
from tests.cli.tidb.ui.test_cluster import Everything
from tests.e2e.waiting import eventually

_PLACE = ("default", "tc/shop")
_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _at(seconds: float) -> datetime:
    return _NOW + timedelta(seconds=seconds)


def _pod(ordinal: int, created: float, ready: float | None = None, **metadata: str) -> ClusterPod:
    served = {"type": "Ready", "status": "False" if ready is None else "True"}
    served |= {} if ready is None else {"lastTransitionTime": _at(ready).isoformat()}
    status = {"phase": "Running", "conditions": [served]}
    return pod("tikv", f"shop-tikv-{ordinal}", status, creationTimestamp=_at(created).isoformat(), **metadata)


def _deletion(ordinal: int, at: float, of: str = "shop-tikv") -> Json:
    message = f"delete Pod {of}-{ordinal} in StatefulSet {of} successful"
    return {"reason": "SuccessfulDelete", "message": message, "lastTimestamp": _at(at).isoformat()}


def _change(*pods: ClusterPod, events: Sequence[Json] = (), holds: bool = True) -> Change | None:
    progressing = condition("Progressing", "RollingUpdate", holds=holds)
    progressing["lastTransitionTime"] = _at(-5).isoformat()
    return change_of(facts(cluster(status={"conditions": [progressing]}), pods), events)


def test_a_cluster_at_rest_has_no_change_under_way() -> None:
    assert _change(_pod(0, -50, -40), holds=False) is None


def test_a_deletion_and_the_next_pod_are_a_restart() -> None:
    change = _change(
        _pod(0, -86400, -86300),
        _pod(1, -30),
        _pod(2, -90, -60),
        _pod(3, -200, -190, deletionTimestamp=_at(20).isoformat()),
        events=[_deletion(2, -100), _deletion(1, -35), _deletion(3, -10), _deletion(4, -150), _deletion(0, -20, "x")],
    )
    assert change is not None
    assert [
        Past("shop-tikv-4", "leaves", _at(-150), _at(-150)),
        Past("shop-tikv-2", "restarts", _at(-100), _at(-60)),
        Past("shop-tikv-1", "restarts", _at(-35), None),
        Past("shop-tikv-3", "restarts", _at(-10), None),
    ] == change.steps


def test_an_event_of_a_foreign_clock_is_no_restart() -> None:
    last = _deletion(1, 0) | {"lastTimestamp": "9999-12-31T23:59:59Z"}
    first = _deletion(0, 0) | {"lastTimestamp": "0001-01-01T00:00:00Z"}
    change = _change(_pod(0, -30), _pod(1, -20), events=[first, last, last | {"message": _deletion(2, 0)["message"]}])
    assert change is not None
    assert ["starts", "starts", "leaves"] == [past.act for past in change.steps]


def test_without_events_a_new_pod_has_started() -> None:
    change = _change(_pod(0, -30, -10), _pod(1, -800, -790), _pod(2, -1600, -1500))
    assert change is not None
    # more than eleven minutes before the others: another change
    assert ["shop-tikv-0"] == [past.pod for past in change.steps if past.act == "starts"]


_LEFT = [
    {"pod": "shop-tikv-1", "component": "tikv", "act": "starts", "begins": 0, "ends": 20},
    {"pod": "shop-tikv-0", "component": "tikv", "act": "restarts", "begins": 30, "ends": 50},
]
_DOCUMENT = {
    "clusters": [{"end": "done", "message": "", "seconds": 50, "steps": _LEFT, "lowest": [], "gaps": []}],
    "differences": ["Not in the twin: nodes."],
}


class _Rehearsals:
    """Rehearsals that end when the test says how."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []
        self.ends: queue.Queue[Json | Exception] = queue.Queue()

    def __call__(self, arguments: Sequence[str]) -> Json:
        self.commands.append(arguments)
        ended = self.ends.get(timeout=10)
        if isinstance(ended, Exception):
            raise ended
        return ended


_ONE = Change(3, [Past("shop-tikv-2", "restarts", _at(-60), _at(-40))])
_TWO = Change(3, [*_ONE.steps, Past("shop-tikv-1", "restarts", _at(-10), None)])


def _ended(outlooks: Outlooks, change: Change) -> Outlook:
    eventually(lambda: not outlooks.of(_PLACE, change).is_computing)
    return outlooks.of(_PLACE, change)


def test_each_step_is_rehearsed_once_however_often_a_page_refreshes() -> None:
    outlooks = Outlooks(rehearse := _Rehearsals(), FakeClock())
    assert (True, None) == ((first := outlooks.of(_PLACE, _ONE)).is_computing, first.forecast)
    assert outlooks.of(_PLACE, _ONE) is first
    # another step waits for the rehearsal that runs
    assert outlooks.of(_PLACE, _TWO) is first
    rehearse.ends.put(_DOCUMENT)
    known = _ended(outlooks, _ONE)
    assert known.forecast is not None
    assert ["shop-tikv-1", "shop-tikv-0"] == [step.pod for step in known.forecast.steps]
    assert [["plan", "tc/shop", "--namespace=default"]] == rehearse.commands
    # until the next one ends, the last one is shown
    assert (True, known.forecast) == ((again := outlooks.of(_PLACE, _TWO)).is_computing, again.forecast)
    rehearse.ends.put(Failure("pods cannot be read"))
    assert ("pods cannot be read", None) == ((failed := _ended(outlooks, _TWO)).problem, failed.forecast)
    assert 2 == len(rehearse.commands)


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        (Failure("pods cannot be read"), "pods cannot be read"),
        ({"clusters": []}, f"IndexError: list index out of range; {IN_LOG}"),
        ({"clusters": [_LEFT[0] | {"lowest": 1}]}, "ValidationError: .*; "),
        (OSError("the machine is full"), "OSError: the machine is full; "),
    ],
)
def test_a_rehearsal_that_fails_says_why_and_can_be_tried_again(ended: Json | Exception, problem: str) -> None:
    outlooks = Outlooks(rehearse := _Rehearsals(), FakeClock())
    outlooks.of(_PLACE, _ONE)
    # a rehearsal that runs is not begun once more
    outlooks.retry(_PLACE)
    rehearse.ends.put(ended)
    assert re.match(problem, _ended(outlooks, _ONE).problem)
    outlooks.retry(_PLACE)
    rehearse.ends.put(_DOCUMENT)
    outlooks.of(_PLACE, _ONE)
    assert ("", True) == ((known := _ended(outlooks, _ONE)).problem, known.forecast is not None)
    assert 2 == len(rehearse.commands)


class _Mended(Rehearsals):
    """Rehearsals of which the first prints no plan."""

    def __init__(self) -> None:
        super().__init__([])
        self._documents: list[Json] = [{"clusters": []}, _DOCUMENT]

    def __call__(self, arguments: Sequence[str]) -> Json:
        """See `Rehearse`."""
        return self._documents.pop(0)


def test_the_page_has_a_button_that_rehearses_again() -> None:
    shop = "/clusters/tc/default/shop"
    with open_page(Client(Everything()), rehearsals=_Mended()) as browser:
        eventually(lambda: "What is left is not known: IndexError" in browser.page(shop).text)
        (form,) = browser.page(shop).every("form")
        answer = browser.press(str(form.attributes["action"]))
        assert (303, shop) == (answer.status_code, answer.headers["location"])
        eventually(lambda: "Left: 1 pod restarts" in browser.page(shop).text)


def _shown(change: Change, outlook: Outlook) -> str:
    view = change_view(_PLACE, change, outlook, _NOW)
    parts = templates().get_template("parts.html").module
    return str(parts.drawn(view.timeline, "the change"))  # type: ignore[attr-defined]  # a macro


def _outlook(*steps: Step, at: float = -10) -> Outlook:
    return Outlook(None, 3, is_computing=False, at=_at(at), forecast=Forecast("done", "", 50, steps))


def test_the_past_and_the_rest_are_on_one_line_of_time() -> None:
    starts = Step("shop-tikv-1", "tikv", "starts", 0.0, 20.0)
    restarts = Step("shop-tikv-0", "tikv", "restarts", 30.0, 50.0)
    view = change_view(_PLACE, _TWO, _outlook(starts, restarts), _NOW)
    assert [
        ("shop-tikv-2", "restarted, Ready after 20s", "restarts", 0.0, 20.0),
        ("shop-tikv-1", "is restarting, for 10s", "restarts", 50.0, 70.0),
        ("shop-tikv-0", "restarts, Ready after 20s", "restarts later", 80.0, 100.0),
    ] == [(bar.name, bar.what, bar.kind, bar.begins, bar.ends) for bar in view.timeline.bars]
    assert (60.0, "kubectl tidb plan tc/shop --namespace=default") == (view.timeline.now, view.command)


def test_a_step_that_is_late_delays_those_after_it() -> None:
    ahead = [Step(f"shop-tikv-{at}", "tikv", "restarts", 30.0 * at, 30.0 * at + 20) for at in (0, 1)]
    view = change_view(_PLACE, _ONE, _outlook(*ahead), _NOW)
    assert [(60.0, 80.0), (90.0, 110.0)] == [(bar.begins, bar.ends) for bar in view.timeline.bars[1:]]


def test_hostile_names_stay_text() -> None:
    hostile = '<script src="//evil.example"></script>'
    change = Change(3, [Past(hostile, "restarts", _at(-60), None)])
    shown = _shown(change, _outlook(Step(hostile + "0", "tikv", "restarts", 0.0, None)))
    assert 2 == shown.count("&lt;script src=")
    assert "<script" not in shown
    assert "and is not Ready at the end" in shown
