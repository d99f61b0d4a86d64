"""With v1.6's definitions, which lack conditions of four kinds, idling costs nothing, and problems are events (I29)."""

from collections import Counter
from collections.abc import Iterator

import pytest

from apis.crd import KINDS, definition
from kube.objects import Json
from kube.resources import (
    BACKUP_SCHEDULES,
    COMPACT_BACKUPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    TIDB_DASHBOARDS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from tests.apis.backups import S3, by_br
from tests.controllers.simple_world import SimpleWorld
from tests.definitions_of_v16 import definitions_of_v16

NOBODY: Json = {"clusters": [{"name": "nobody"}]}
VALID: dict[Resource, Json] = {
    TIDB_DASHBOARDS: NOBODY | {"version": "v8.5.2", "requests": {"storage": "1Gi"}},
    TIDB_NG_MONITORINGS: NOBODY | {"ngMonitoring": {"version": "v8.5.2", "requests": {"storage": "1Gi"}}},
    TIDB_MONITORS: {part: {"baseImage": "a", "version": "b"} for part in ("prometheus", "reloader", "initializer")},
    BACKUP_SCHEDULES: {"schedule": "0 3 * * *", "backupTemplate": by_br()},
}
REFUSED: dict[Resource, Json] = {
    TIDB_DASHBOARDS: {"clusters": []},
    TIDB_NG_MONITORINGS: {"clusters": []},
    TIDB_MONITORS: {"clusters": []},
    BACKUP_SCHEDULES: {"schedule": "always"},
}


@pytest.fixture(params=REFUSED, ids=lambda resource: str(resource.kind))
def world(request: pytest.FixtureRequest) -> Iterator[SimpleWorld]:
    made = SimpleWorld(request.param, crds=definitions_of_v16())
    try:
        yield made
    finally:
        made.stop()


@pytest.mark.rule("I29")
def test_a_refusal_is_one_event_and_then_no_request(world: SimpleWorld) -> None:
    world.add(**VALID[world.resource] | REFUSED[world.resource])
    world.run(5.0)
    world.forget()
    world.resyncs()
    assert ([], "conditions" in world.status()) == (world.requests(), False)
    (told,) = world.events()
    assert told[0] in {"InvalidSpec", "FailedValidation"}


@pytest.mark.parametrize("world", [TIDB_DASHBOARDS, TIDB_NG_MONITORINGS], indirect=True)
def test_a_wait_is_one_event(world: SimpleWorld) -> None:
    world.add(**VALID[world.resource])
    world.resyncs()
    assert {"NoSuchCluster": 1} == Counter(reason for reason, _ in world.events())


@pytest.mark.parametrize("world", [TIDB_DASHBOARDS, BACKUP_SCHEDULES], indirect=True)
def test_the_condition_appears_soon_after_our_definitions_are_installed(world: SimpleWorld) -> None:
    world.add(**VALID[world.resource])
    for kind in KINDS:
        ours = definition(kind)
        name = ours["metadata"]["name"]
        there = world.admin.get(CUSTOM_RESOURCE_DEFINITIONS, name).decode()
        world.admin.replace(CUSTOM_RESOURCE_DEFINITIONS, name, "", there | {"spec": ours["spec"]})
    world.resyncs(21)
    before = world.events()
    assert world.status()["conditions"]
    world.resyncs()
    assert before == world.events()


IGNORED: dict[Resource, Json] = {
    BACKUP_SCHEDULES: {"compactInterval": "24h"},
    COMPACT_BACKUPS: {"s3": S3, "br": {"cluster": "nobody", "db": "shop"}, "startTs": "1", "endTs": "2"},
}


@pytest.mark.parametrize("world", IGNORED, ids=lambda resource: resource.kind, indirect=True)
def test_a_field_without_effect_is_one_event(world: SimpleWorld) -> None:
    world.add(**VALID.get(world.resource, {}) | IGNORED[world.resource])
    world.resyncs()
    (told,) = (message for reason, message in world.events() if reason == "FieldsIgnored")
    assert told.startswith(("spec.compactInterval: ", "spec.br.db: "))


def test_a_schedule_that_can_not_be_read_is_one_event() -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definitions = [definition(kind) for kind in KINDS]
    for each in definitions:
        properties = each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        properties["spec"], properties["status"] = anything, {"type": "object"}
    world = SimpleWorld(BACKUP_SCHEDULES, crds=definitions)
    world.add(schedule=5)
    world.resyncs()
    assert ["InvalidSpec"] == [reason for reason, _ in world.events()]
    world.stop()
