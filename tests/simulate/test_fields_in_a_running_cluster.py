"""R22: a field that a user sets in a running TidbCluster shows within seconds, is refused, or is named.

A cluster with every component runs in the sandbox. Each field is set in a fork of that world, so that one bring-up
serves all fields: within a few seconds an object, a condition or an event must differ. Fields that show only at a
failure or a scale-in have tests of their own (`member.fields.declared.AT_RUN_TIME`).
"""

import os
from collections.abc import Iterator, Sequence

import pytest

import controllers.unheeded
from kube.errors import ApiError
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from member.fields.declared import AT_RUN_TIME
from member.fields.schema import fields, fits, last_fit
from ports.clock import FakeClock
from simulate.engine.worlds import CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld
from tests.simulate.field_setting import as_text, with_field

MADE = (STATEFUL_SETS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, SECRETS, ROLES, PERSISTENT_VOLUME_CLAIMS)
SECONDS = 5.0
"""The time of a few reconciles."""

_APART = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
OTHER_VALUES = {
    "pd.mode": "",
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_APART]}},
}
"""Values of fields whose usual sample changes nothing in a running cluster."""

ELSEWHERE = ("*configUpdateStrategy", "services*", "cluster.name")
"""The strategy shows at the next change of a configuration, the others only beside a second field."""


@pytest.fixture(scope="module")
def running() -> Iterator[OperatorWorld]:
    world = OperatorWorld(clock=FakeClock())
    world.apply(CLUSTERS["complete"]() | {"metadata": {"name": "basic"}})
    world.run_until_ready(within=600.0)
    world.run(60.0)
    yield world
    world.stop()


def seen(world: OperatorWorld) -> str:
    """The objects, the conditions and the events of the cluster, as text."""
    objects = [each for resource in MADE for each in world.every(resource)]
    conditions = world.cluster()["status"]["conditions"]
    events = sorted({f"{each['reason']} {each['message']}" for each in world.every(EVENTS)})
    return "\n".join((as_text(objects, conditions), *events))


def edited(world: OperatorWorld, path: str) -> str:
    """What is seen a few seconds after a field was set, or the refusal of the API server."""
    cluster = world.cluster()
    spec = with_field(cluster["spec"], path, fields()[path], OTHER_VALUES)
    try:
        world.admin.replace(TIDB_CLUSTERS, "basic", NAMESPACE, cluster | {"spec": spec})
    except ApiError as error:
        return error.message
    world.run(SECONDS)
    return seen(world)


def in_a_fork(world: OperatorWorld, path: str) -> str:
    """As `edited`, in a copy of the world."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(edited(world, path).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(child, 0)
    return found


def silent(world: OperatorWorld, paths: Sequence[str]) -> Iterator[str]:
    """The fields after whose setting nothing differs."""
    before = seen(world)
    for path in paths:
        is_later = last_fit(path, AT_RUN_TIME) or any(fits(path, glob) for glob in ELSEWHERE)
        if not is_later and in_a_fork(world, path) in (before, ""):
            yield path


@pytest.mark.slow
@pytest.mark.rule("R22")
def test_some_fields_show_or_are_named_in_a_running_cluster(running: OperatorWorld) -> None:
    assert [] == list(silent(running, list(fields())[::40]))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("part", range(8))
@pytest.mark.rule("R22")
def test_every_field_shows_or_is_named_in_a_running_cluster(running: OperatorWorld, part: int) -> None:
    assert [] == list(silent(running, list(fields())[part::8]))


@pytest.mark.slow
def test_reports_a_field_without_effect_that_is_not_named(
    running: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "pd.service.port"
    assert [] == list(silent(running, [path]))
    monkeypatch.setattr(controllers.unheeded, "ignored", lambda _tc, _spec: [])
    assert [path] == list(silent(running, [path]))
