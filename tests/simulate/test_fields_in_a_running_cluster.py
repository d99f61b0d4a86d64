"""R22: a field that a user sets in a running TidbCluster shows within seconds, is refused, or is named.

A cluster with every component runs in the sandbox. Each field is set in a fork of that world, so that one bring-up
serves all fields: within a few seconds an object, a condition, an event or a setting of a server must differ. `LATER`
has the fields that show only at a failure, a scale-in or a slow restart; `member.fields.declared.AT_RUN_TIME` says what
the user sees then, and names the test.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

import pytest

import controllers.unheeded
from kube.errors import ApiError
from kube.objects import Json
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
from member.fields.declared import AT_RUN_TIME, fields, fits, last_fit
from ports.clock import FakeClock
from simulate.engine.trees import merged
from simulate.engine.worlds import CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld
from tests.simulate.field_setting import as_text, with_field

MADE = (STATEFUL_SETS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, SECRETS, ROLES, PERSISTENT_VOLUME_CLAIMS)
SECONDS = 5.0
"""The time of a few reconciles."""

_APART = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
OTHER_VALUES = {
    "pd.mode": "",
    "configUpdateStrategy": "InPlace",
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_APART]}},
}
"""Values of fields whose usual sample changes nothing in a running cluster."""

_TSO: Json = {"name": "tso", "replicas": 2, "baseImage": "pingcap/pd"}
_SCHEDULING: Json = {"name": "scheduling", "replicas": 1, "baseImage": "pingcap/pd"}
_QUIETER: Json = {"config": {"log": {"level": "warn"}}}
BESIDE: Mapping[str, Json] = {
    "configUpdateStrategy": {"tidb": _QUIETER},
    **{f"{name}.configUpdateStrategy": {name: _QUIETER} for name in ("pd", "tidb", "tikv", "ticdc", "pump")},
    "tiflash.configUpdateStrategy": {"tiflash": {"config": {"config": {"logger": {"level": "warn"}}}}},
    "pdms[].configUpdateStrategy": {"pdms": [_TSO | _QUIETER, _SCHEDULING]},
    "enablePVCReplace": {"pd": {"storageClassName": "other"}},
    "services[].name": {"services": [{"name": "pd", "type": "NodePort"}]},
    "services[].type": {"services": [{"name": "pd", "type": "ClusterIP"}]},
    "cluster.name": {"cluster": {"namespace": "elsewhere"}},
    **{f"{name}.scalePolicy.scaleOutParallelism": {name: {"replicas": 5}} for name in ("tidb", "tikv", "tiflash")},
}
"""Further settings of the same edit that give a field a meaning."""

LATER = (
    "enablePVReclaim",
    *(f"{name}.maxFailoverCount" for name in ("pd", "tikv", "tidb", "tiflash")),
    "*.recoverFailover",
    "*.failover.recoverByUID",
    "*.scalePolicy.scaleInParallelism",
    "*.spareVolReplaceReplicas",
    "tikv.evictLeaderTimeout",
    "tikv.waitLeaderTransferBackTimeout",
    "tikv.storeLabels",
    "ticdc.gracefulShutdownTimeout",
)
"""Globs of the fields that an edit alone does not show, each in `AT_RUN_TIME`."""


@pytest.fixture(scope="module")
def running() -> Iterator[OperatorWorld]:
    world = OperatorWorld(clock=FakeClock())
    world.apply(CLUSTERS["complete"]() | {"metadata": {"name": "basic"}})
    world.run_until_ready(within=600.0)
    world.run(60.0)
    world.forget()
    yield world
    world.stop()


def seen(world: OperatorWorld) -> str:
    """The objects, conditions and events of the cluster, and what its servers were sent since `forget`, as text."""
    objects = [each for resource in MADE for each in world.every(resource)]
    settings = {f"{each.url} {each.body!r}" for each in world.operator.dataplane.requests if not each.is_read}
    conditions = world.cluster()["status"]["conditions"]
    events = sorted({f"{each['reason']} {each['message']}" for each in world.every(EVENTS)})
    return "\n".join((as_text(objects, conditions), *events, *sorted(settings)))


def edited(world: OperatorWorld, beside: Json, path: str) -> str:
    """What is seen a few seconds after an edit of a field, if any, and others, or the refusal of the API server."""
    cluster = world.cluster()
    spec = merged(cluster["spec"], beside)
    if path:
        spec = with_field(spec, path, fields()[path], OTHER_VALUES)
    try:
        world.admin.replace(TIDB_CLUSTERS, "basic", NAMESPACE, cluster | {"spec": spec})
    except ApiError as error:
        return error.message
    world.run(SECONDS)
    return seen(world)


def in_a_fork(world: OperatorWorld, beside: Json, path: str = "") -> str:
    """As `edited`, in a copy of the world."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(edited(world, beside, path).encode())
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
        beside = BESIDE.get(path, {})
        without = in_a_fork(world, beside) if beside else before
        if in_a_fork(world, beside, path) in (without, ""):
            yield path


_PARTS = range(8) if os.environ.get("FIELDS") == "all" else range(1)
"""The parts of all fields to set; `make simulate` sets all."""


def is_later(path: str) -> bool:
    return any(fits(path, glob) for glob in LATER)


AT_ONCE = [path for path in fields() if not is_later(path)]


@pytest.mark.slow
@pytest.mark.rule("R22")
def test_some_fields_show_or_are_named_in_a_running_cluster(running: OperatorWorld) -> None:
    assert [] == list(silent(running, AT_ONCE[::40]))


def test_each_field_that_shows_later_has_a_test_of_what_the_user_sees() -> None:
    assert [] == [path for path in fields() if is_later(path) and not last_fit(path, AT_RUN_TIME)]


@pytest.mark.slow
@pytest.mark.thorough
def test_an_edit_alone_does_not_show_the_fields_that_show_later(running: OperatorWorld) -> None:
    """So that the list has no field that the other tests could check."""
    later = [path for path in fields() if is_later(path)]
    assert later == list(silent(running, later))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("part", _PARTS)
@pytest.mark.rule("R22")
def test_every_field_shows_or_is_named_in_a_running_cluster(running: OperatorWorld, part: int) -> None:
    assert [] == list(silent(running, AT_ONCE[part::8]))


@pytest.mark.slow
def test_reports_a_field_without_effect_that_is_not_named(
    running: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "pd.service.port"
    assert [] == list(silent(running, [path]))
    monkeypatch.setattr(controllers.unheeded, "ignored", lambda _tc, _spec: [])
    assert [path] == list(silent(running, [path]))
