"""The family *losses and edits*: which plans there are, and that each means what its name says."""

from itertools import product

import pytest

from kube.resources import PODS
from simulate.engine.plan import InvalidPlan, Plan
from simulate.engine.state import State
from simulate.engine.worlds import MORTAL, MORTAL_SLOTTED
from simulate.families.generate import generated
from simulate.families.loss_and_edit import CHANGES, FAMILY, LOSSES, MACHINES, MOMENTS, REFUSED, SUBJECTS, makes_sense
from simulate.run import prepare

_WITHOUT_SUBSTITUTES = ("pump-2", "tiproxy-2", "ticdc-3")


_REFUSED = 81
"""Losses with a substitute, of each kind one, in which an edit is refused."""


def test_there_are_2936_plans_and_each_is_found_by_its_name() -> None:
    plans = list(FAMILY.plans())
    assert 2936 == len({plan.name for plan in plans})
    assert _REFUSED == len([plan for plan in plans if f".{REFUSED}@" in plan.name])
    assert plans == [generated(plan.name) for plan in plans]


def test_leaves_out_losses_that_make_no_sense_for_their_subject() -> None:
    changes = len(CHANGES.keys() - {REFUSED})
    every = len(SUBJECTS) * len(LOSSES) * changes * len(MOMENTS)
    left_out = [(subject, lost) for subject in SUBJECTS for lost in LOSSES if not makes_sense(subject, lost)]
    of_tiflash = [("tiflash-3", lost) for lost in ("pod", "two", "zone")]
    of_zones = [("zones-6", lost) for lost in LOSSES if lost != "zone"]
    of_servers = [(subject, lost) for subject in _WITHOUT_SUBSTITUTES for lost in ("volume", "two", "zone")]
    of_dm = [("dm-master-3", "two"), ("dm-master-3", "zone"), ("dm-master-5", "zone")]
    of_dm += [("dm-worker-3", "two"), ("dm-worker-3", "zone")]
    of_tidb = [("tidb-2", "volume"), ("tidb-2", "two")]
    of_all_three = [("pd-3", "two"), ("tikv-3", "two")]
    of_slots = [("pd-slots", "two")]
    assert [*of_all_three, *of_zones, *of_tidb, *of_tiflash, *of_servers, *of_slots, *of_dm] == left_out
    # losses that are neither recorded nor replaced; TiDB, which continues elsewhere
    unnoticed = [*product(_WITHOUT_SUBSTITUTES, (*MACHINES, "pod")), ("tidb-2", "removed"), ("tidb-2", "tainted")]
    moments = len(unnoticed) * changes * (len(MOMENTS) - 1)
    # of a worker that is removed nothing is left; one that has lost its disk is never recorded, nor replaced
    removed = len([lost for lost in LOSSES if makes_sense("dm-worker-3", lost)]) * len(MOMENTS)
    unrecorded = (len(MOMENTS) - 1) * (changes - 1)
    expected = every - len(left_out) * changes * len(MOMENTS) - moments - removed - unrecorded
    assert 2936 == expected + _REFUSED


@pytest.mark.parametrize("name", ["pd-4.pod.image@recorded", "pd-3.pod.image", "pd-3.rain.image@recorded", "pd-3"])
def test_refuses_a_name_that_is_no_plan(name: str) -> None:
    with pytest.raises(InvalidPlan, match=r"is no `SUBJECT\.LOSS\.CHANGE@MOMENT`"):
        generated(f"loss/{name}")


@pytest.mark.slow
@pytest.mark.thorough
def test_a_lost_zone_takes_the_pods_on_its_nodes() -> None:
    taken = {}
    for cluster in MORTAL:
        engine = prepare(Plan(name="zones", cluster=cluster))
        for component in ("pd", "tikv"):
            ordinal = 2 if cluster == MORTAL_SLOTTED else 1
            engine.world.faults.zone_gone(f"default/basic-{component}-{ordinal}")
            gone = engine.world.kubelet.faults.gone
            pods = [each for each in State(engine.world).all(PODS) if each["spec"].get("nodeName") in gone]
            names = sorted(each["metadata"]["name"].removeprefix("basic-") for each in pods)
            taken[cluster, component] = [name for name in names if name.startswith(component)]
            engine.world.faults.heal()
    assert {
        ("mortal-3-3", "pd"): ["pd-1"],
        ("mortal-3-3", "tikv"): ["tikv-1"],
        ("mortal-5-3", "pd"): ["pd-1", "pd-4"],
        ("mortal-5-3", "tikv"): ["tikv-1"],
        ("mortal-3-4", "pd"): ["pd-1"],
        ("mortal-3-4", "tikv"): ["tikv-1"],
        ("mortal-3-5", "pd"): ["pd-1"],
        ("mortal-3-5", "tikv"): ["tikv-1", "tikv-4"],
        **{(f"mortal-{part}", "pd"): ["pd-1"] for part in ("pump", "tidb", "tiproxy", "ticdc", "zones")},
        **{(f"mortal-{part}", "tikv"): ["tikv-1"] for part in ("pump", "tidb", "tiproxy", "ticdc")},
        ("mortal-zones", "tikv"): ["tikv-1", "tikv-4"],
        ("mortal-slots", "pd"): ["pd-2"],
        ("mortal-slots", "tikv"): ["tikv-2"],
        ("mortal-tiflash", "pd"): ["pd-1"],
        ("mortal-tiflash", "tikv"): ["tikv-1"],
    } == taken
