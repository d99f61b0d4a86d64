"""The walk of a rolling restart: how the pods stand, the next step (lifecycle.md 7.1)."""

import sys

import pytest

from member.lifecycle.roll_steps import Finished, Prepare, Replace, Restart, RollingPod, Step, next_step
from member.lifecycle.roll_view import min_ready_seconds, partition, restart_priority
from member.observed.nodes import Activity
from member.outcome import Wait
from tests.member.reconciling import as_object


def pods(text: str) -> list[RollingPod]:
    """One word per pod, by ordinal: new or old, then its problem."""
    return [_standing(ordinal, word) for ordinal, word in enumerate(text.split())]


def _standing(ordinal: int, word: str) -> RollingPod:
    age, *flags = word.split(":")
    return RollingPod(
        f"p-{ordinal}",
        ordinal,
        exists="gone" not in flags,
        ready=not {"ill", "gone", "starting", "unheard", "ended", "imageless"} & set(flags),
        updated=age == "new",
        unmet_condition="serves" if "unmet_condition" in flags else "",
        ignored="ignored" in flags,
        held="held" in flags,
        starting="starting" in flags,
        activity=next((each for flag, each in _ACTIVITIES.items() if flag in flags), Activity.RUNNING),
        untried="imageless" in flags,
        reached="reached" in flags,
        priority=next((int(flag) for flag in flags if flag.lstrip("-").isdecimal()), 0),
        leads="leads" in flags,
    )


_ACTIVITIES = {
    "unheard": Activity.UNHEARD,
    "ended": Activity.STOPPED,
    "imageless": Activity.NEVER_STARTED,
    "gone": None,
}


def step(text: str) -> str:
    """The next step in words."""
    return _words(next_step(pods(text)))


def _words(step: Step) -> str:
    match step:
        case Wait(what):
            return what
        case Restart(pod) | Replace(pod) | Prepare(pod):
            return f"{type(step).__name__.lower()} {pod.name}"
        case Finished():
            return "finished"


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old old old", "prepare p-2"),
        ("old old new", "prepare p-1"),
        ("new new new", "finished"),
        ("", "finished"),
        # a pod that came late or was skipped is next
        ("old new new", "prepare p-0"),
        ("new old new", "prepare p-1"),
    ],
)
@pytest.mark.rule("I15")
def test_a_roll_proceeds_from_the_highest_ordinal_down(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old old new:ill", "until pod p-2 is Ready"),
        ("old old new:unmet_condition", "until pod p-2 serves"),
        ("old new:unmet_condition new:ill", "until pod p-2 is Ready"),
        ("new:unmet_condition new new", "until pod p-0 serves"),
        ("new:ill new new", "until pod p-0 is Ready"),
    ],
)
@pytest.mark.rule("I14", "F20")
def test_none_is_restarted_before_all_restarted_ones_serve(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old old old:ill", "restart p-2"),
        ("old old:ill new", "restart p-1"),
        ("old old old:gone", "restart p-2"),
        # the partition would take the Ready ones above along
        ("old old:ill old", "replace p-1"),
        ("old:ill old old", "replace p-0"),
        # or wait for them: the StatefulSet proceeds from the highest ordinal down
        ("old old:ill new:ill", "replace p-1"),
        ("old:ill old:ill old:ill", "restart p-2"),
        ("old:ill old:ill new:ill", "replace p-1"),
        ("old:ill new:unmet_condition new", "restart p-0"),
    ],
)
@pytest.mark.rule("F11")
def test_an_outdated_pod_that_is_not_ready_is_first(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        # the process behind an unreachable node is unknown, and its end there would take effect at an unexpected time
        ("old:unheard old old", "until pod p-0 is Ready"),
        ("old:unheard old old:ended", "restart p-2"),
        ("old old:unheard old:ill", "restart p-2"),
        ("old old:unheard:ignored old", "prepare p-2"),
        ("new old:unheard:ignored new", "finished"),
        ("old:gone:unheard old old", "until pod p-0 is Ready"),
    ],
)
def test_a_pod_on_a_node_that_is_cut_off_is_not_broken(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old old:ended old:ill", "replace p-1"),
        ("old old:gone old:ill", "replace p-1"),
        ("old:ended old:ended old:ill", "replace p-1"),
    ],
)
def test_a_pod_without_processes_comes_before_pods_that_may_be_needed(standing: str, expected: str) -> None:
    assert expected == step(standing)


def test_no_second_pod_is_taken_to_an_image_that_no_registry_has() -> None:
    assert "until pod p-2 is Ready" == step("old:ended old:ended new:imageless")
    assert "replace p-1" == step("old:ended old:ended new:imageless:ignored")


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old:starting old new:ill", "until pod p-2 is Ready"),
        ("old:gone:starting old new:ill", "until pod p-2 is Ready"),
        ("old:starting old:ill new:ill", "replace p-1"),
        # the new revision has no known problem, or no pod waits for it
        ("old:starting old new", "replace p-0"),
        ("old old:starting new", "restart p-1"),
        ("old:starting old old", "replace p-0"),
        ("old:starting old new:ill:ignored", "replace p-0"),
    ],
)
@pytest.mark.rule("F11")
def test_a_pod_that_restarts_by_itself_is_not_taken_to_a_revision_that_does_not_serve(
    standing: str, expected: str
) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        # lost, and its node with it: it may never go
        ("old old:gone:ignored old", "prepare p-2"),
        ("old old:gone:ignored new", "prepare p-0"),
        ("new old:gone:ignored new", "finished"),
        # it exists, so it can be replaced
        ("old old old:ill:ignored", "restart p-2"),
        ("old old:ill:ignored old", "replace p-1"),
        ("old old new:ill:ignored", "prepare p-1"),
        ("new new new:ill:ignored", "finished"),
        ("new new new:unmet_condition:ignored", "finished"),
    ],
)
@pytest.mark.rule("F12")
def test_a_roll_does_not_wait_for_a_pod_without_a_member(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old:held old:held old", "prepare p-2"),
        ("old:held old:held new", "finished"),
        ("old:held:ill old old", "until pod p-0 is Ready"),
        # a pod that is already on it stays there
        ("new:held old:held new", "finished"),
    ],
)
@pytest.mark.rule("lifecycle-14")
def test_pods_that_the_user_holds_back_are_not_restarted(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("old:1 old old", "prepare p-0"),
        ("old:1 old:10 old:2", "prepare p-1"),
        ("old:1 new:10 old:2", "prepare p-2"),
        ("old old old:-1", "prepare p-1"),
        ("old new old:-1", "prepare p-0"),
        # equal ones follow each other from the highest ordinal down, the leader last
        ("old:5 old:5 old", "prepare p-1"),
        ("old:5 old:5:leads old", "prepare p-0"),
        ("old:-1 old old:leads", "prepare p-1"),
        ("old:leads:1 old old", "prepare p-0"),
        # without a priority of an outdated pod, the order is the usual one
        ("new:1 old old:leads", "prepare p-2"),
        ("old:1:held old old:leads", "prepare p-2"),
        # a pod that Kubernetes may be restarting already precedes all others
        ("old:9 old:reached old:reached", "prepare p-2"),
        ("old:9 old:reached new", "prepare p-1"),
        # as usual: what does not serve is first, and no pod goes before the restarted ones serve
        ("old:9 old old:ill", "restart p-2"),
        ("old:9:ill old old:ill", "replace p-0"),
        ("old:9:ill old old:ended", "restart p-2"),
        ("old:9:starting old new:ill", "until pod p-2 is Ready"),
        ("new:unmet_condition old:9 old", "until pod p-0 serves"),
    ],
)
@pytest.mark.rule("lifecycle-7.1.1")
def test_pods_restart_by_the_priority_that_the_user_gives_them(standing: str, expected: str) -> None:
    assert expected == step(standing)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10", 10), ("-3", -3), (None, 0), ("first", None), ("", None), ("1.5", None), ("1_0", None), ("9" * 5000, None)],
)
@pytest.mark.rule("lifecycle-7.1.1")
def test_a_priority_is_an_integer(text: str | None, expected: int | None) -> None:
    annotations = {} if text is None else {"tidb.pingcap.com/restart-priority": text}
    assert expected == restart_priority(as_object({"metadata": {"name": "p-0", "annotations": annotations}}))


@pytest.mark.parametrize(("text", "expected"), [("2", 2), (None, 0), ("two", sys.maxsize), ("-1", sys.maxsize)])
@pytest.mark.rule("lifecycle-14")
def test_an_annotation_keeps_pods_below_an_ordinal_on_their_revision(text: str | None, expected: int) -> None:
    annotations = {} if text is None else {"tidb.pingcap.com/tikv-partition": text}
    assert expected == partition(annotations, "tikv")


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("-1", 0), ("soon", 0), (None, 0)])
@pytest.mark.rule("lifecycle-14")
def test_a_pod_may_have_to_be_ready_for_some_seconds(text: str | None, expected: int) -> None:
    annotations = {} if text is None else {"tidb.pingcap.com/tikv-min-ready-seconds": text}
    assert expected == min_ready_seconds(annotations, "tikv")
