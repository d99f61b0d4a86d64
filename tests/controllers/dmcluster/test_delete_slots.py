"""DMClusters in Advanced StatefulSets: delete slots of masters and workers (lifecycle.md 4.4)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from apis.ordinals import slots_annotation
from kube.resources import ADVANCED_STATEFUL_SETS, DM_CLUSTERS, PODS, STATEFUL_SETS
from manifests import ADVANCED_STATEFUL_SET
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.world import load_crds
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE, definitions

_ON = replace(SETTINGS, advanced_stateful_sets=True)


@pytest.fixture
def world(clock: FakeClock) -> Iterator[DMWorld]:
    made = DMWorld(clock=clock, crds=[*definitions(), *load_crds(ADVANCED_STATEFUL_SET)])
    yield made
    made.stop()


def pods(world: DMWorld, component: str) -> dict[int, str]:
    stem = f"{NAME}-{component}-"
    found = (each["metadata"] for each in world.every(PODS) if each["metadata"]["name"].startswith(stem))
    return {int(meta["name"].removeprefix(stem)): meta["uid"] for meta in found}


@pytest.mark.slow
@pytest.mark.rule("4.4")
@pytest.mark.parametrize("component", ["dm-master", "dm-worker"])
def test_a_slot_takes_the_place_of_its_pod(world: DMWorld, component: str) -> None:
    world.bring_up()
    before = {each: pods(world, each) for each in ("dm-master", "dm-worker")}
    world.restart(_ON)
    world.run_until(lambda: not world.admin.list_page(STATEFUL_SETS, NAMESPACE).items, 60.0)
    world.run_until_ready(NAME, within=120.0)
    assert before == {each: pods(world, each) for each in before}
    assert len(before) == len(world.admin.list_page(ADVANCED_STATEFUL_SETS, NAMESPACE).items)

    highest = max(before[component])
    patch = {"metadata": {"annotations": {slots_annotation(component): "[0]"}}}
    world.admin.patch(DM_CLUSTERS, NAME, NAMESPACE, patch)
    world.run_until(lambda: [*range(1, highest + 2)] == sorted(pods(world, component)), 600.0)
    world.run_until_ready(NAME, within=300.0)
    assert {each: uid for each, uid in before[component].items() if each}.items() <= pods(world, component).items()
