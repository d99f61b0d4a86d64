"""Foreign objects under the names of the operator's objects, for every kind (F4). A first object of a kind shows which
objects the operator creates for it. Then each of these names is taken before another object of that kind is created:
once by an object that a ConfigMap controls, once by one without controller and labels."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest

import controllers.pod_troubles
import kube.resources
from kube.objects import Json
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    EVENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from ports.clock import FakeClock
from tests.apis.backups import by_br
from tests.controllers.tidbmonitor.monitors import monitor
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample

_STORAGE: Json = {"requests": {"storage": "1Gi"}}
_ONE: Json = {"replicas": 1, "storageSize": "1Gi"}

SPECS: dict[Resource, Json] = {
    BACKUPS: by_br(),
    RESTORES: by_br(),
    COMPACT_BACKUPS: by_br(startTs="2026-01-01T00:00:00Z", endTs="2026-01-02T00:00:00Z"),
    BACKUP_SCHEDULES: {"schedule": "* * * * *", "maxBackups": 3, "backupTemplate": by_br()},
    DM_CLUSTERS: sample("dm")["spec"] | {"configUpdateStrategy": "InPlace"},
    TIDB_MONITORS: monitor(persistent=True, storage="1Gi")["spec"],
    TIDB_INITIALIZERS: {"image": "tnir/mysqlclient", "cluster": {"name": "basic"}, "initSql": "SELECT 1"},
    TIDB_DASHBOARDS: {"clusters": [{"name": "basic"}], "version": "v8.5.2"} | _STORAGE,
    TIDB_NG_MONITORINGS: {"clusters": [{"name": "basic"}], "ngMonitoring": {"version": "v8.5.2"} | _STORAGE},
}
SPECS[DM_CLUSTERS]["master"] |= {"replicas": 1}
SPECS[DM_CLUSTERS]["worker"] |= {"replicas": 1}

_POD: Json = {"containers": [{"name": "c", "image": "busybox"}], "restartPolicy": "Never"}
_TEMPLATE: Json = {"metadata": {"labels": {"app": "theirs"}}, "spec": _POD}
_WORKLOAD: Json = {
    "replicas": 0,
    "selector": {"matchLabels": {"app": "theirs"}},
    "template": _TEMPLATE | {"spec": {"containers": _POD["containers"]}},
}
THEIRS: dict[Resource, Json] = {
    BACKUPS: {"spec": {}},
    CONFIG_MAPS: {"data": {"theirs": "1"}},
    DEPLOYMENTS: {"spec": _WORKLOAD},
    JOBS: {"spec": {"suspend": True, "template": _TEMPLATE}},
    PERSISTENT_VOLUME_CLAIMS: {"spec": {"accessModes": ["ReadWriteOnce"], "resources": _STORAGE}},
    PODS: {"spec": _POD},
    ROLES: {"rules": []},
    ROLE_BINDINGS: {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "theirs"}},
    SECRETS: {"data": {"theirs": "MQ=="}},
    SERVICES: {"spec": {"ports": [{"port": 80}]}},
    SERVICE_ACCOUNTS: {},
    STATEFUL_SETS: {"spec": _WORKLOAD | {"serviceName": "theirs"}},
}
"""The foreign objects, by resource."""

_OF_STATEFUL_SETS = (PODS, PERSISTENT_VOLUME_CLAIMS)
_PROBE = "probe"

_TIME = re.compile(r"\d{4}-\d\d-\d\dt\d\d-\d\d-\d\d")
_SCHEDULED, _DUE = 180.0, "2026-01-01t00-03-00"
"""When, in seconds and as names have it, the schedules are due whose names are taken."""

_MANY = (DM_CLUSTERS, TIDB_MONITORS)
"""Kinds with many objects."""
_HASHED = re.compile(r"-\d{7}$")


@dataclass(frozen=True, slots=True)
class Case:
    """An object named `name`, created while a foreign object has the name of one of its objects."""

    name: str
    taken: Resource
    by: str
    is_controlled: bool

    def __str__(self) -> str:
        return f"{self.taken} {self.by} {'controlled' if self.is_controlled else 'unowned'}"


def begin() -> OperatorWorld:
    """A world in which objects of all kinds can work."""
    world = OperatorWorld(clock=FakeClock())
    world.apply(sample("basic"))
    world.run_until_ready()
    for body, resource in (
        ({"metadata": {"name": "tidb-backup-manager"}}, SERVICE_ACCOUNTS),
        ({"metadata": {"name": "keys"}, "data": {"access_key": "QUs=", "secret_key": "QUs="}}, SECRETS),
        ({"metadata": {"name": "rival"}}, CONFIG_MAPS),
    ):
        world.admin.create(resource, body, NAMESPACE)
    world.forget()
    return world


def create(world: OperatorWorld, kind: Resource, name: str) -> None:
    """Create an object of a kind, and an initializer's cluster, after which it names its objects."""
    spec = SPECS[kind]
    if kind == TIDB_INITIALIZERS:
        world.apply(sample("basic") | {"metadata": {"name": name}, "spec": sample("basic")["spec"] | {"paused": True}})
        spec = spec | {"cluster": {"name": name}}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
    world.admin.create(kind, body, NAMESPACE)


def made_for(world: OperatorWorld, kind: Resource) -> list[tuple[Resource, str]]:
    """The names of an object's objects, created by the operator and for its StatefulSets."""
    create(world, kind, _PROBE)
    world.run(75.0)
    found = dict.fromkeys(_creations(world))
    return [(resource, name) for resource, name in found if _PROBE in name and not _HASHED.search(name)]


def _creations(world: OperatorWorld) -> Iterator[tuple[Resource, str]]:
    known = {str(each): each for each in vars(kube.resources).values() if isinstance(each, Resource)}
    for entry in world.world.server.audit.recent():
        call, resource = entry.call, known.get(entry.call.resource, EVENTS)
        if call.verb != "create" or call.subresource or resource == EVENTS or entry.code != 201:
            continue
        name = (msgspec.json.decode(call.request.body or b"{}").get("metadata") or {}).get("name") or ""
        if call.user == OPERATOR or (call.user == "system:statefulset-controller" and resource in _OF_STATEFUL_SETS):
            yield resource, name


def take(world: OperatorWorld, case: Case) -> None:
    owner: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "rival", "controller": True}
    owner["uid"] = world.get(CONFIG_MAPS, "rival")["metadata"]["uid"]
    kind = {"apiVersion": case.taken.api_version, "kind": case.taken.kind}
    meta: Json = {"name": case.by} | ({"ownerReferences": [owner]} if case.is_controlled else {})
    world.admin.create(case.taken, kind | {"metadata": meta} | THEIRS[case.taken], NAMESPACE)


def kept(world: OperatorWorld, case: Case) -> Json:
    """The parts of an object that only its owner may change."""
    body = world.get(case.taken, case.by)
    meta = body["metadata"]
    labels = {key: text for key, text in (meta.get("labels") or {}).items() if not key.startswith("topology.")}
    whose = {"labels": labels} | {key: meta.get(key) for key in ("uid", "ownerReferences")}
    return whose | {key: body.get(key) for key in ("data", "rules", "roleRef")} | {"spec": _asked(body)}


def _asked(body: Json) -> Json:
    spec = body.get("spec") or {}
    return {key: spec.get(key) for key in ("template", "replicas", "selector", "ports", "suspend", "containers")}


def said(world: OperatorWorld, kind: Resource, case: Case) -> str:
    """All texts in the status of an object and in the events about it."""
    status = world.admin.get(kind, case.name, NAMESPACE).decode().get("status") or {}
    events = (each.decode() for each in world.admin.list_page(EVENTS, NAMESPACE).items)
    about = (each for each in events if each["involvedObject"]["name"] == case.name)
    return json.dumps([status, [each["message"] for each in about if each["involvedObject"]["kind"] == kind.kind]])


def cases_of(kind: Resource, names: list[tuple[Resource, str]]) -> list[Case]:
    """Two cases per name, each about its own object."""
    found = []
    for number, (resource, name) in enumerate(names):
        if kind == BACKUP_SCHEDULES and resource != BACKUPS:
            continue  # the Job of its Backup
        for is_controlled in (True, False):
            if resource == PERSISTENT_VOLUME_CLAIMS and not is_controlled:
                continue  # the user's, such as a restored one: it is used
            own = f"{'c' if is_controlled else 'u'}{number}"
            found.append(Case(own, resource, _TIME.sub(_DUE, name.replace(_PROBE, own)), is_controlled))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=kind.kind, marks=[pytest.mark.thorough] * (kind in _MANY)) for kind in SPECS],
)
@pytest.mark.rule("F4")
def test_foreign_objects_under_our_names_are_named_and_left_alone(kind: Resource) -> None:
    world = begin()
    cases = cases_of(kind, made_for(world, kind))
    assert cases
    world.admin.delete(kind, _PROBE, NAMESPACE)
    world.run(15.0)
    before: dict[Case, Json] = {}
    for case in cases:
        take(world, case)
        before[case] = kept(world, case)
        create(world, kind, case.name)
        world.operator.work()
    world.run(max(45.0, _SCHEDULED - world.clock.now() + 15.0))
    assert before == {case: kept(world, case) for case in cases}
    assert {} == {case: told for case in cases if not names_it(told := said(world, kind, case), case)}
    world.stop()


def names_it(told: str, case: Case) -> bool:
    """True if the message names the object, its owner, and the way out."""
    whose = ("ConfigMap rival",) if case.is_controlled else ("not labelled as ours", "without a controller")
    return case.by in told and any(each in told for each in whose) and "delete" in told


@pytest.mark.slow
@pytest.mark.planted
def test_reports_a_kind_that_does_not_name_foreign_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers.pod_troubles, "in_the_way", lambda *_: "")
    with pytest.raises(AssertionError, match=r"Case.*plural='pods'"):
        test_foreign_objects_under_our_names_are_named_and_left_alone(TIDB_NG_MONITORINGS)
