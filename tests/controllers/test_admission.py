"""The judgement at admission: the sentences of the conditions, and no obstacle to repairs or to the operator."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest

from apis.crd import KINDS
from controllers.admission import BadReview, Judge, Verdict, judges, review
from kube.objects import Json, Object
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    DM_CLUSTERS,
    RESTORES,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from ports.clock import FakeClock
from simulate.engine.trees import merged
from simulate.manifests.rich_specs import rich_spec
from tests.controllers.test_unheeded import WRONG
from tests.operator_world import NAMESPACE, OperatorWorld, sample

INVALID: dict[Resource, Json] = {
    TIDB_CLUSTERS: {"tikv": {"evictLeaderTimeout": "soon"}, "pd": {"config": "a = "}},
    DM_CLUSTERS: {"version": "v1.0.7"},
    BACKUPS: {"backupMode": "volume-snapshot"},
    RESTORES: {"backoffLimit": -1},
    BACKUP_SCHEDULES: {"schedule": "now and then"},
    COMPACT_BACKUPS: {"startTs": "soon"},
    TIDB_MONITORS: {"prometheus": {"retentionTime": "long"}},
    TIDB_INITIALIZERS: {"cluster": {"namespace": "elsewhere"}},
    TIDB_DASHBOARDS: {"clusters": []},
    TIDB_NG_MONITORINGS: {"clusters": []},
}
"""A mistake for each kind."""


@pytest.fixture(scope="module")
def running() -> Iterator[OperatorWorld]:
    """A world with the sample `basic`, which is Ready. Tests only read it."""
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    yield world
    world.stop()


def judged_in(world: OperatorWorld) -> Mapping[tuple[str, str], Judge[Any]]:
    (deps,) = world.operator.wired
    return judges(deps, lambda: True)


def judge_in(world: OperatorWorld, resource: Resource) -> Judge[Any]:
    return judged_in(world)[resource.group, resource.plural]


def as_object(tree: Json) -> Object:
    return Object(msgspec.json.encode(tree))


def messages(tree: Json, reason: str = "") -> list[str]:
    return [each["message"] for each in tree["status"]["conditions"] if reason in ("", each.get("reason"))]


def made(resource: Resource, change: Json) -> Json:
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "odd"}}
    spec: Json = merged(rich_spec(resource), change)
    return {**head, "spec": spec}


def test_every_kind_has_a_judge(running: OperatorWorld) -> None:
    assert {("pingcap.com", each.plural) for each in KINDS} == set(judged_in(running))


@pytest.mark.slow
@pytest.mark.parametrize("resource", INVALID, ids=lambda resource: resource.kind)
def test_refuses_an_invalid_spec_with_the_sentence_of_the_condition(resource: Resource, clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    world.admin.create(resource, made(resource, INVALID[resource]), NAMESPACE)
    world.run(20.0)
    tree = world.get(resource, "odd")
    refusal = judge_in(world, resource).verdict(as_object({**tree, "status": {}}), None).refusal
    assert refusal in [*messages(tree), tree["status"].get("message")]
    assert "" == judge_in(world, resource).verdict(as_object(made(resource, {})), None).refusal
    world.stop()


@pytest.mark.slow
@pytest.mark.parametrize("resource", WRONG, ids=lambda resource: resource.kind)
def test_warns_of_fields_without_effect_with_the_sentence_of_the_condition(
    resource: Resource, clock: FakeClock
) -> None:
    world = OperatorWorld(clock=clock)
    world.admin.create(resource, made(resource, WRONG[resource][0]), NAMESPACE)
    world.run(20.0)
    tree = world.get(resource, "odd")
    expected = [f"FieldsIgnored: {message}" for message in messages(tree, "FieldsIgnored")]
    assert expected == list(judge_in(world, resource).verdict(as_object(tree), None).warnings)
    world.stop()


def test_warns_of_unknown_fields_and_of_settings_that_the_operator_overrides(clock: FakeClock) -> None:
    running = OperatorWorld(clock=clock)
    running.apply(sample("basic"))
    running.run_until_ready()
    running.change(
        tikv={"affinity": {"nodeAfinity": {}}, "config": {"server": {"status-addr": "0.0.0.0:1"}}},
        acrossK8s=True,
        tiproxy={"replicas": 0},
    )
    found = judge_in(running, TIDB_CLUSTERS).verdict(
        as_object(sample("basic") | {"spec": running.cluster()["spec"]}), None
    )
    kinds = [each.partition(":")[0] for each in found.warnings]
    assert ["UnknownFields", "SettingsOverridden", "AcrossKubernetes"] == kinds
    running.run(5.0)
    said = running.cluster()["status"]["conditions"]
    expected = {f"{each['reason']}: {each['message']}" for each in said}
    assert set(found.warnings[:2]) <= expected
    running.stop()


Edit = Callable[[Json], None]


def _set(**spec: Any) -> Edit:
    def edit(tree: Json) -> None:
        tree["spec"] = merged(tree["spec"], spec)

    return edit


def _label(tree: Json) -> None:
    tree["metadata"]["labels"] = {"app.kubernetes.io/instance": "another"}


def _delete(tree: Json) -> None:
    tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    tree["spec"]["tikv"]["evictLeaderTimeout"] = "later"


def _finish(tree: Json) -> None:
    tree["status"], tree["metadata"]["finalizers"] = {}, ["x/y"]


_SOON = {"evictLeaderTimeout": "soon"}
_BAD = "evictLeaderTimeout"


@pytest.mark.parametrize(
    ("before", "edit", "refused"),
    [
        (_set(), _set(tikv=_SOON), _BAD),
        (_set(tikv=_SOON), _set(tikv={"replicas": 4}), ""),
        (_set(tikv=_SOON), _set(tikv={"evictLeaderTimeout": "later"}), ""),
        (_set(tikv=_SOON), _set(pd={"config": "a = "}), "spec.pd.config"),
        (_set(tikv=_SOON, pd={"config": "a = "}), _set(pd={"config": ""}), ""),
        (_set(tikv=_SOON), _label, ""),
        (_set(), _delete, ""),
        (_set(tikv=_SOON), _finish, ""),
        (_set(), _label, ""),
        (_set(), _set(tikv={"config": None}), "spec.tikv.config"),
        (_set(tikv={"replicas": "many"}), _set(tikv={"replicas": 3, **_SOON}), ""),
        (_set(tikv=_SOON), _set(tikv={"replicas": "many"}), "spec.tikv.replicas"),
    ],
    ids=[
        "a new mistake",
        "a mistake that stays",
        "a mistake in another form",
        "a second mistake",
        "a repair of one of two",
        "labels",
        "deletion",
        "status and finalizers",
        "a label of a valid spec",
        "a contradiction to what runs",
        "a repair that uncovers another mistake",
        "a mistake that hides others",
    ],
)
def test_an_update_is_refused_only_if_it_adds_a_problem(
    running: OperatorWorld, before: Edit, edit: Edit, refused: str
) -> None:
    old, new = running.cluster(), running.cluster()
    for change, trees in ((before, (old, new)), (edit, (new,))):
        for tree in trees:
            change(tree)
    found = judge_in(running, TIDB_CLUSTERS).verdict(as_object(new), as_object(old))
    assert (refused in found.refusal) if refused else (found.refusal == "")
    assert bool(refused) == bool(found.refusal)


def test_an_accepted_invalid_spec_is_named_in_a_warning(running: OperatorWorld) -> None:
    old, new = running.cluster(), running.cluster()
    for tree in (old, new):
        _set(tikv=_SOON)(tree)
    _set(tikv={"replicas": 4})(new)
    (warning,) = judge_in(running, TIDB_CLUSTERS).verdict(as_object(new), as_object(old)).warnings
    assert warning.startswith("InvalidSpec: spec.tikv.evictLeaderTimeout")


def test_a_problem_that_moves_in_a_list_is_no_new_one(running: OperatorWorld) -> None:
    bad, good = ({"name": name, "storageSize": size} for name, size in (("a", "x"), ("b", "1Gi")))
    old, new = running.cluster(), running.cluster()
    _set(tikv={"storageVolumes": [good, bad]})(old)
    _set(tikv={"storageVolumes": [bad]})(new)
    assert "" == judge_in(running, TIDB_CLUSTERS).verdict(as_object(new), as_object(old)).refusal


def test_what_runs_counts_only_once_it_has_been_read(running: OperatorWorld) -> None:
    (deps,) = running.operator.wired
    old, new = running.cluster(), running.cluster()
    _set(tikv={"config": None})(new)
    unread = judges(deps, lambda: False)[TIDB_CLUSTERS.group, TIDB_CLUSTERS.plural]
    assert Verdict() == unread.verdict(as_object(new), as_object(old))


def test_a_backup_that_has_begun_can_be_edited(running: OperatorWorld) -> None:
    old, new = (made(BACKUPS, {}) | {"status": {"phase": "Running"}} for _ in range(2))
    new["spec"] = merged(new["spec"], INVALID[BACKUPS])
    found = judge_in(running, BACKUPS).verdict(as_object(new), as_object(old))
    assert ("", True) == (found.refusal, found.warnings[0].startswith("InvalidSpec: "))


def asked(tree: Json | None, old: Json | None = None, **changes: Any) -> bytes:
    request = {
        "uid": "1",
        "resource": {"group": "pingcap.com", "version": "v1alpha1", "resource": "tidbclusters"},
        "operation": "CREATE" if old is None else "UPDATE",
        "object": tree,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | changes}
    return msgspec.json.encode(body)


def always(_: Object) -> bool:
    return True


def test_answers_with_the_uid_of_the_review(running: OperatorWorld) -> None:
    bad = sample("basic")
    _set(tikv=_SOON)(bad)
    answer = review(asked(bad), judged_in(running), always)["response"]
    assert ("1", False, "Invalid", 422) == (
        answer["uid"],
        answer["allowed"],
        answer["status"]["reason"],
        answer["status"]["code"],
    )
    assert answer["status"]["message"].startswith("spec.tikv.evictLeaderTimeout: ")


@pytest.mark.parametrize("changes", [{"operation": "DELETE"}, {"subResource": "status"}, {"resource": {}}])
def test_accepts_what_it_does_not_judge(running: OperatorWorld, changes: Json) -> None:
    bad = sample("basic")
    _set(tikv=_SOON)(bad)
    assert review(asked(bad, **changes), judged_in(running), always)["response"] == {"uid": "1", "allowed": True}


def test_accepts_objects_of_another_operator(running: OperatorWorld) -> None:
    bad = sample("basic")
    _set(tikv=_SOON)(bad)
    assert review(asked(bad), judged_in(running), lambda _: False)["response"] == {"uid": "1", "allowed": True}


def test_an_object_without_a_name_gets_one_of_full_length(running: OperatorWorld) -> None:
    tree = sample("basic")
    tree["metadata"] = {"generateName": "a" * 60, "namespace": "x"}
    message = review(asked(tree), judged_in(running), always)["response"]["status"]["message"]
    assert "metadata.name" in message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"","resource":{},'
        b'"operation":"CREATE"}}',
        asked(None),
        asked({"spec": {}}),
        asked({"metadata": 7}),
        asked({"metadata": {"name": "a"}}, operation="UPDATE"),
        asked({"metadata": {"name": "a"}, "spec": {}}).replace(b'"spec":{}', b'"spec":' + b"[" * 100_000),
    ],
    ids=[
        "empty",
        "bytes",
        "deep",
        "list",
        "version",
        "no object",
        "no metadata",
        "odd",
        "no old object",
        "deep object",
    ],
)
def test_anything_else_is_no_review(running: OperatorWorld, body: bytes) -> None:
    with pytest.raises(BadReview):
        review(body, judged_in(running), always)
