"""v1.6 returns after our operator has worked: what it would change then (objects.md 11.3 to 11.5)."""

import json
from collections.abc import Iterator

import pytest

from kube.objects import Json
from ports.clock import FakeClock
from tests.takeover.eyes_of_v16 import would_change
from tests.takeover.halfway import Halfway

pytestmark = pytest.mark.slow


@pytest.fixture
def taken(clock: FakeClock) -> Iterator[Halfway]:
    """3/3/2 of v1.6, which our operator manages by now."""
    made = Halfway(clock)
    made.take_over()
    yield made
    made.world.stop()


@pytest.mark.rule("objects-11.5")
def test_v16_agrees_with_a_scaled_cluster(taken: Halfway) -> None:
    taken.world.change(tidb={"replicas": 3}, tikv={"replicas": 4})
    taken.world.run_until_ready(within=300.0)
    assert {} == seen_by_v16(taken)


@pytest.mark.rule("objects-11.4")
def test_v16_does_not_restart_a_cluster_that_was_restarted_here(taken: Halfway) -> None:
    taken.world.change(tikv={"labels": {"team": "a"}, "env": [{"name": "A", "value": "b"}]}, tidb={"version": "v8.5.3"})
    taken.world.run_until_ready(within=300.0)
    assert {} == seen_by_v16(taken)


@pytest.mark.rule("objects-6.5")
def test_v16_restarts_reconfigured_components_for_its_own_start_script_and_nothing_else(
    taken: Halfway,
) -> None:
    taken.world.change(tikv={"config": '[log]\nlevel = "warn"\n'})
    taken.world.run_until_ready(within=300.0)
    assert {"StatefulSet/basic-tikv": ["restarts", "template"]} == seen_by_v16(taken)
    # once its ConfigMap has v1.6's name, nothing is left
    assert {} == seen_by_v16(taken, as_if_its_own="StatefulSet/basic-tikv")


def seen_by_v16(taken: Halfway, as_if_its_own: str = "") -> dict[str, list[str]]:
    """The changes that v1.6 would make, by kind and name; the ConfigMap of one StatefulSet as if it had v1.6's
    digest."""
    wanted = taken.wanted_by_v16()
    found = {}
    for key, now in taken.left.objects().items():
        if key in wanted:
            other = _with_config_map_of(wanted[key], now) if as_if_its_own and key == as_if_its_own else now
            if changes := would_change(wanted[key], other):
                found[key] = sorted(changes)
    return found


def _with_config_map_of(wanted: Json, now: Json) -> Json:
    """An object in which the name of the ConfigMap in use is the wanted one."""
    ours, theirs = (_config_map(each) for each in (now, wanted))
    made: Json = json.loads(json.dumps(now).replace(ours, theirs))
    return made


def _config_map(body: Json) -> str:
    volumes = body["spec"]["template"]["spec"]["volumes"] if "template" in body["spec"] else ()
    return next((each["configMap"]["name"] for each in volumes if "configMap" in each), "-")
