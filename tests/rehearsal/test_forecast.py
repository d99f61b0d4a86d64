"""What frames of a rehearsal say about a change."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rehearsal.forecast import Floor, Frame, Gap, Pod, Step, forecast, needed


def pod(name: str, life: int = 0, *, ready: bool = True, leaving: bool = False) -> Pod:
    component = name.rpartition("-")[0]
    return Pod(f"{name}/{life}", component, "node-0", ready, leaving)


def frame(at: float, pods: Mapping[str, Pod], *, reason: str = "Done", waits: bool = False, message: str = "") -> Frame:
    counts: dict[str, int] = {}
    for each in pods.values():
        counts[each.component] = counts.get(each.component, 0) + 1
    return Frame(at, pods, counts, is_ready=reason == "Done", is_waiting=waits, reason=reason, message=message)


def pods(*names: str) -> dict[str, Pod]:
    return {name: pod(name) for name in names}


def test_a_change_without_consequences_has_no_steps() -> None:
    found = forecast([frame(0, pods("pd-0")), frame(60, pods("pd-0"))])
    assert ("done", (), ()) == (found.end, tuple(found.steps), tuple(found.gaps))


def test_a_pod_restarts_from_its_deletion_until_its_successor_is_ready() -> None:
    whole = pods("tikv-0", "tikv-1", "tikv-2")
    frames = [
        frame(0, whole),
        frame(5, whole | {"tikv-2": pod("tikv-2", leaving=True)}, reason="Rolling", waits=True),
        frame(7, whole | {"tikv-2": pod("tikv-2", 1, ready=False)}, reason="Rolling", waits=True),
        frame(13, whole | {"tikv-2": pod("tikv-2", 1)}),
    ]
    found = forecast(frames)
    assert [Step("tikv-2", "tikv", "restarts", 5, 13)] == found.steps
    assert [Floor("tikv", 3, 2)] == found.floors
    assert ([], 13) == (found.gaps, found.seconds)


def test_a_new_pod_starts_and_a_superfluous_one_leaves() -> None:
    leaving = {"tidb-1": pod("tidb-1", leaving=True)}
    new = pods("tidb-0") | {"tikv-0": pod("tikv-0", ready=False)}
    frames = [
        frame(0, pods("tidb-0", "tidb-1")),
        frame(1, new | leaving),
        frame(4, new),
        frame(9, pods("tidb-0", "tikv-0")),
    ]
    assert [Step("tidb-1", "tidb", "leaves", 1, 4), Step("tikv-0", "tikv", "starts", 1, 9)] == forecast(frames).steps


def test_a_component_without_enough_ready_pods_has_a_gap() -> None:
    down = pod("pd-1", ready=False)
    frames = [
        frame(0, pods("pd-0", "pd-1", "pd-2")),
        frame(10, pods("pd-0", "pd-2") | {"pd-1": down}),
        frame(12, {"pd-0": pod("pd-0", ready=False), "pd-1": down, "pd-2": pod("pd-2")}),
        frame(20, pods("pd-0", "pd-1", "pd-2")),
    ]
    assert [Gap("pd", 12, 8, 1, 2)] == forecast(frames).gaps


def test_a_new_pod_that_is_not_ready_yet_is_no_gap() -> None:
    frames = [
        frame(0, pods("tikv-0", "tikv-1", "tikv-2")),
        frame(1, pods("tikv-0", "tikv-1", "tikv-2") | {f"tikv-{n}": pod(f"tikv-{n}", ready=False) for n in (3, 4)}),
        frame(9, pods(*(f"tikv-{n}" for n in range(5)))),
    ]
    assert [] == forecast(frames).gaps


@pytest.mark.parametrize(
    ("waits", "end"), [pytest.param(False, "refused", id="refused"), pytest.param(True, "stuck", id="stuck")]
)
def test_the_last_frame_has_the_end_and_its_message(waits: bool, end: str) -> None:
    found = forecast([frame(0, pods("pd-0")), frame(1, pods("pd-0"), reason="Invalid", waits=waits, message="why")])
    assert (end, "why") == (found.end, found.message)


@pytest.mark.parametrize("reason", ["Suspended", "Paused"])
def test_a_cluster_that_its_spec_holds_is_not_refused(reason: str) -> None:
    assert "held" == forecast([frame(0, pods("pd-0")), frame(1, {}, reason=reason)]).end


def test_a_warning_that_the_cluster_had_before_is_none_of_the_change() -> None:
    before, after = frame(0, pods("pd-0")), frame(1, pods("pd-0"))
    frames = [replace(before, warnings=["old"]), replace(after, warnings=["old", "new"])]
    assert ["new"] == forecast(frames).warnings


@pytest.mark.parametrize(
    ("component", "replicas", "least"),
    [("pd", 3, 2), ("pd", 4, 3), ("dm-master", 5, 3), ("tikv", 3, 2), ("tikv", 2, 2), ("tidb", 4, 1), ("tidb", 0, 0)],
)
def test_the_pods_that_a_component_needs(component: str, replicas: int, least: int) -> None:
    assert least == needed(component, replicas)
