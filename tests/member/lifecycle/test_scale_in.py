"""The decisions of a scale-in, case by case (lifecycle.md 8.3, 8.5, 18)."""

from collections.abc import Sequence

import pytest

from dataplane.pd import Store
from member.lifecycle import quorum as pd
from member.lifecycle.quorum import Gone, Remove, StandsIn, Step, Transfer, Voter
from member.outcome import Wait
from member.stores import scaling as stores
from member.stores.kind import TIKV_STORES, Needs
from member.stores.scaling import Evict, Keep, Others, Refuse, TakeOffline


def voters(pattern: str, leader: int = 0, peers: str = "") -> list[Voter]:
    """One member per letter, `h`ealthy or `i`ll (unhealthy), then the peers."""
    own = [Voter(n, f"pd-{n}", n, each == "h", n == leader) for n, each in enumerate(pattern)]
    return own + [Voter(100 + n, f"peer-{n}", None, each == "h", 100 + n == leader) for n, each in enumerate(peers)]


@pytest.mark.parametrize(
    ("members", "leaving", "leads_next"),
    [
        (voters("hhhhh", leader=4), 4, "pd-0"),
        (voters("hhhhh", leader=2), 2, "pd-0"),
        (voters("hhhhh", leader=0), 0, "pd-4"),
        (voters("h", leader=0, peers="hh"), 0, "peer-0"),
        (voters("hhhhh", leader=4)[1:], 4, "pd-1"),
        (voters("ihhhi", leader=4), 4, "pd-1"),
    ],
    ids=["highest", "middle", "lowest", "only own", "no ordinal 0", "ordinal 0 is ill"],
)
@pytest.mark.rule("F28", "#3341")
def test_chooses_the_next_leader_when_the_leader_leaves(
    members: Sequence[Voter], leaving: int, leads_next: str
) -> None:
    step = pd.next_step(members, leaving)
    assert isinstance(step, Transfer)
    assert leads_next == step.to.name


_LEAVES = voters("hhhhh")[4]


@pytest.mark.parametrize(
    ("members", "step"),
    [
        (voters("hhhhh"), Remove(_LEAVES)),
        (voters("hhhh"), Gone()),
        (voters("hhhih"), Wait("waiting for pd-3 to be healthy before removing pd-4 from PD")),
        (voters("hhhii"), Remove(voters("hhhii")[4])),
        (voters("hhiii"), Wait("2 of the 4 PD members that would remain are healthy, which is not a quorum")),
        (voters("hiiih"), Wait("1 of the 4 PD members that would remain are healthy, which is not a quorum")),
        ([*voters("hhhhh"), Voter(9, "", None, healthy=False)], None),
        ([_LEAVES], Wait("0 of the 0 PD members that would remain are healthy, which is not a quorum")),
    ],
    ids=["well", "gone", "other ill", "itself ill", "no quorum", "loses quorum", "other joins", "last"],
)
@pytest.mark.rule("I8", "I9")
def test_when_a_member_may_leave(members: Sequence[Voter], step: Step | None) -> None:
    if step is None:
        step = Wait("waiting for a member that has not started to be healthy before removing pd-4 from PD")
    assert step == pd.next_step(members, 4)


NEEDS = Needs(3, "PD keeps 3 replicas of each region", "lower max-replicas or the counts of placement rules in PD")
_TOO_FEW = (
    "only 2 TiKV stores would be Up, but PD keeps 3 replicas of each region; raise spec.tikv.replicas again, or lower "
    "max-replicas or the counts of placement rules in PD"
)
_FULL = "full; raise spec.tikv.replicas again, or give the stores that stay larger volumes"
_BEFORE = "has reported to PD before removing store 7 of pod t-3"


@pytest.mark.parametrize(
    ("state", "leaders_gone", "others", "step"),
    [
        ("Up", False, Others(3), Evict()),
        ("Up", True, Others(3), TakeOffline()),
        ("Disconnected", False, Others(3), Evict()),
        ("Down", False, Others(3), TakeOffline()),
        ("Up", True, Others(2), Refuse),
        ("Down", True, Others(2), Refuse),
        ("Up", True, Others(1, [4]), Refuse),
        (
            "Up",
            True,
            Others(2, [4]),
            Wait(f"waiting until store 4 {_BEFORE}"),
        ),
        ("Up", False, Others(3, shortage="full"), Refuse),
        ("Disconnected", True, Others(3, shortage="full"), Refuse),
        ("Down", True, Others(3, shortage="full"), TakeOffline()),
        (
            "Offline",
            False,
            Others(3, shortage="full"),
            Wait(f"store 7 of pod t-3 is Offline: 30 regions left to move; {_FULL}"),
        ),
        ("Offline", False, Others(3), Wait("store 7 of pod t-3 is Offline: 30 regions left to move")),
        ("Offline", False, Others(2), Wait(f"store 7 of pod t-3 is Offline: 30 regions left to move; {_TOO_FEW}")),
    ],
)
@pytest.mark.rule("lifecycle-8.5", "F35", "#6239", "I5")
def test_the_next_step_of_a_store(
    state: str, leaders_gone: bool, others: Others, step: stores.Step | type[Refuse]
) -> None:
    store = Store(7, "t-3:20160", state, region_count=30)
    found = stores.next_step(TIKV_STORES, store, "t-3", others, NEEDS, leaders_gone=leaders_gone, wanted=3)
    assert (step == found) or (step is Refuse and isinstance(found, Refuse))


@pytest.mark.parametrize(("state", "kept"), [("Up", True), ("Disconnected", True), ("Down", False)])
@pytest.mark.rule("O12")
def test_a_store_stays_while_fewer_than_wanted_would_be_up(state: str, kept: bool) -> None:
    lost = Store(7, "tikv-5:20160", state)
    found = stores.next_step(TIKV_STORES, lost, "tikv-5", Others(4), NEEDS, leaders_gone=True, wanted=5)
    assert kept is isinstance(found, Keep)


@pytest.mark.rule("O12")
def test_a_member_stays_while_fewer_than_wanted_would_be_healthy() -> None:
    joining = [voter for voter in voters("hhhh") if voter.ordinal != 1]
    assert StandsIn(2) == pd.next_step(joining, 3, 3)
    assert Remove(voters("hhhh")[3]) == pd.next_step(voters("hhhh"), 3, 3)
