"""Which events enqueue which TidbCluster (lifecycle.md 1.1)."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from controllers.enqueueing import DETAIL, ECHO, URGENT, enqueue_object
from controllers.tidbcluster import events
from informers.tombstones import DeletedFinalStateUnknown
from kube.objects import Json, Object
from kube.reading import IndexFunc

OWNER = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "name": "basic", "uid": "tc", "controller": True}
LABELS = {"app.kubernetes.io/managed-by": "tidb-operator", "app.kubernetes.io/instance": "basic"}


def made(name: str, version: str = "1", **meta: Any) -> Object:
    body: Json = meta.pop("body", {})
    named = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version}
    return Object(msgspec.json.encode(body | {"metadata": named | meta}))


class Clusters:
    """`basic`, and one whose instance label is not its name."""

    changes = 0

    def __init__(self) -> None:
        named = made("named", labels={"app.kubernetes.io/instance": "other"})
        self.items = {"basic": made("basic", uid="tc"), "named": named}

    def get(self, namespace: str, name: str) -> Object | None:
        return self.items.get(name) if namespace == "ns" else None

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        raise NotImplementedError

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        wanted = (labels or {}).items()
        return [item for item in self.items.values() if namespace == "ns" and wanted <= item.metadata.labels.items()]


class Keys:
    """The enqueued keys, with their priorities."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.priorities: list[int] = []

    def add(self, key: str, priority: int = 0) -> None:
        self.all.append(key)
        self.priorities.append(priority)


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.mark.rule("OP-1")
def test_every_event_of_a_cluster_including_resyncs_enqueues_it(keys: Keys) -> None:
    handler, basic = events.of_clusters(keys.add), made("basic")
    handler.on_add(basic, True)
    handler.on_update(basic, basic)
    handler.on_delete(basic)
    handler.on_delete(DeletedFinalStateUnknown("ns/gone", None))
    assert ["ns/basic"] * 3 + ["ns/gone"] == keys.all


@pytest.mark.rule("CW-3")
def test_a_change_of_an_owned_object_enqueues_its_cluster(keys: Keys) -> None:
    handler, owned = events.of_owned(Clusters(), keys.add), made("sts", ownerReferences=[OWNER])
    handler.on_add(owned, False)
    handler.on_update(owned, owned)  # a resync
    handler.on_update(owned, made("sts", "2", ownerReferences=[OWNER]))
    handler.on_update(owned, made("sts", "3"))  # it was owned by the cluster
    handler.on_delete(DeletedFinalStateUnknown("ns/sts", owned))
    handler.on_delete(DeletedFinalStateUnknown("ns/sts", None))
    assert ["ns/basic"] * 4 == keys.all


@pytest.mark.parametrize(
    "other",
    [{"kind": "StatefulSet"}, {"uid": "former"}, {"name": "unknown"}, {"controller": False}, {"apiVersion": "v1"}],
)
@pytest.mark.rule("CW-3")
def test_a_change_of_a_foreign_object_enqueues_nothing(keys: Keys, other: Json) -> None:
    handler = events.of_owned(Clusters(), keys.add)
    handler.on_add(made("sts", ownerReferences=[OWNER | other]), False)
    assert [] == keys.all


def pod(version: str = "1", *, ready: bool = False, node: str = "n", **meta: Any) -> Object:
    conditions = [{"type": "Ready", "status": str(ready)}]
    body = {"spec": {"nodeName": node}, "status": {"phase": "Running", "conditions": conditions}}
    return made("pod", version, body=body, **({"labels": LABELS} | meta))


@pytest.mark.parametrize(
    ("new", "counts"),
    [
        (pod("1", ready=True), False),
        (pod("2"), False),
        (pod("2", annotations={"a": "b"}), False),
        (pod("2", ready=True), True),
        (pod("2", node="m"), True),
        (pod("2", uid="another"), True),
        (pod("2", labels=LABELS | {"controller-revision-hash": "2"}), True),
    ],
    ids=["resync", "other status", "annotation", "ready", "node", "new pod", "revision"],
)
@pytest.mark.rule("lifecycle-1.1")
def test_a_pod_enqueues_its_cluster_when_a_field_that_decisions_read_changes(
    keys: Keys, new: Object, counts: bool
) -> None:
    events.of_pods(Clusters(), keys.add).on_update(pod(), new)
    assert ["ns/basic"] * counts == keys.all


@pytest.mark.rule("lifecycle-1.1")
def test_an_added_or_deleted_pod_enqueues_its_cluster(keys: Keys) -> None:
    handler = events.of_pods(Clusters(), keys.add)
    handler.on_add(pod(), False)
    handler.on_delete(pod())
    handler.on_add(pod(labels={"app.kubernetes.io/instance": "basic"}), False)  # not managed by this operator
    handler.on_add(pod(labels=LABELS | {"app.kubernetes.io/instance": "nobody"}), False)
    assert ["ns/basic"] * 2 == keys.all


@pytest.mark.rule("lifecycle-1.2")
def test_finds_a_cluster_with_a_custom_instance_label(keys: Keys) -> None:
    events.of_pods(Clusters(), keys.add).on_add(pod(labels=LABELS | {"app.kubernetes.io/instance": "other"}), False)
    assert ["ns/named"] == keys.all


@pytest.mark.rule("PQ-10")
def test_initial_lists_and_resyncs_of_clusters_have_low_priority(keys: Keys) -> None:
    handler, basic = events.of_clusters(keys.add), made("basic")
    handler.on_add(basic, True)
    handler.on_add(basic, False)
    handler.on_update(basic, basic)
    handler.on_update(basic, made("basic", "2"))
    handler.on_delete(basic)
    assert [-100, 0, -100, 0, 0] == keys.priorities


@pytest.mark.rule("PQ-10")
def test_initial_lists_of_owned_objects_have_low_priority(keys: Keys) -> None:
    owned = made("sts", ownerReferences=[OWNER])
    for handler, obj in ((events.of_owned(Clusters(), keys.add), owned), (events.of_pods(Clusters(), keys.add), pod())):
        handler.on_add(obj, True)
        handler.on_add(obj, False)
    events.of_pods(Clusters(), keys.add).on_update(pod(), pod("2", ready=True))
    assert [-100, 0, -100, -1, 0] == keys.priorities


def test_a_new_status_of_an_owned_object_is_a_detail_and_a_new_spec_is_news(keys: Keys) -> None:
    theirs: Json = {"ownerReferences": [OWNER], "generation": 1}
    handler, owned = events.of_owned(Clusters(), keys.add), made("sts", **theirs)
    handler.on_update(owned, made("sts", "2", **theirs))
    assert [DETAIL] == keys.priorities
    wishes: list[Json] = [
        {"generation": 2},
        {"labels": {"a": "b"}},
        {"finalizers": ["a"]},
        {"deletionTimestamp": "now"},
    ]
    for change in wishes:
        handler.on_update(owned, made("sts", "3", **(theirs | change)))
    assert [DETAIL, 0, 0, 0, 0] == keys.priorities


def stateful_set(version: str, ready: int, replicas: int = 3, kind: str = "StatefulSet") -> Object:
    body = {"kind": kind, "spec": {"replicas": replicas}, "status": {"readyReplicas": ready} if ready else {}}
    return made("sts", version, body=body, ownerReferences=[OWNER], generation=1)


@pytest.mark.parametrize(
    ("old", "new", "priority"),
    [
        (stateful_set("1", 2), stateful_set("2", 3), URGENT),
        (stateful_set("1", 0, 1), stateful_set("2", 1, 1), URGENT),
        (stateful_set("1", 0), stateful_set("2", 2), DETAIL),
        (stateful_set("1", 3), stateful_set("2", 3), DETAIL),
        (stateful_set("1", 3), stateful_set("2", 2), DETAIL),
        (stateful_set("1", 1, 0), stateful_set("2", 0, 0), DETAIL),
        (stateful_set("1", 2, kind="Deployment"), stateful_set("2", 3, kind="Deployment"), DETAIL),
    ],
    ids=["the last", "the only one", "not all", "as before", "one fewer", "none wanted", "no stage waits for it"],
)
def test_a_stateful_set_with_all_replicas_ready_is_handled_without_delay(
    keys: Keys, old: Object, new: Object, priority: int
) -> None:
    events.of_owned(Clusters(), keys.add).on_update(old, new)
    assert [priority] == keys.priorities


def test_any_change_of_an_object_without_a_generation_is_news(keys: Keys) -> None:
    handler = events.of_owned(Clusters(), keys.add)
    handler.on_update(made("config", ownerReferences=[OWNER]), made("config", "2", ownerReferences=[OWNER]))
    assert [0] == keys.priorities


def test_the_echo_of_an_own_status_write_has_low_priority(keys: Keys) -> None:
    handler = enqueue_object(keys.add, is_echo=lambda seen: seen.metadata.resource_version == "2")
    basic = made("basic", generation=1)
    handler.on_update(basic, made("basic", "2", generation=1))
    handler.on_update(basic, made("basic", "3", generation=1))
    handler.on_update(basic, made("basic", "2", generation=2))
    assert [ECHO, 0, 0] == keys.priorities


def test_a_users_change_of_a_cluster_is_urgent(keys: Keys) -> None:
    handler = enqueue_object(keys.add)
    paused, resumed = ({"spec": {"paused": each}} for each in (True, False))
    basic = made("basic", body=paused, generation=1)
    handler.on_update(basic, made("basic", "2", body=resumed, generation=2))
    handler.on_update(basic, made("basic", "3", body=paused, generation=1, deletionTimestamp="now"))
    handler.on_update(basic, made("basic", "4", body=paused, generation=1, labels={"a": "b"}))
    assert [URGENT, URGENT, 0] == keys.priorities


def test_a_status_that_moves_the_generation_is_not_urgent(keys: Keys) -> None:
    """The CRDs of v1.6 have no status subresource."""
    handler = enqueue_object(keys.add)
    paused = {"spec": {"paused": True}}
    handler.on_update(made("basic", body=paused, generation=1), made("basic", "2", body=paused, generation=2))
    assert [0] == keys.priorities


def test_a_relevant_change_of_a_volume_claim_enqueues_its_cluster(keys: Keys) -> None:
    handler = events.of_claims(Clusters(), keys.add)
    pending: Json = {"spec": {}, "status": {"phase": "Pending"}}
    bound: Json = {"spec": {"volumeName": "pv"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    grown: Json = {"spec": {"volumeName": "pv"}, "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}
    marked = {"tidb.pingcap.com/pvc-defer-deleting": "2026-01-01T00:00:00Z"}
    told = [
        made("pvc", "1", labels=LABELS, body=pending),
        made("pvc", "2", labels=LABELS, body=bound),
        made("pvc", "3", labels=LABELS | {"tidb.pingcap.com/store-id": "4"}, body=bound),
        made("pvc", "4", labels=LABELS, body=grown),
        made("pvc", "5", labels=LABELS, body=grown, annotations=marked),
        made("pvc", "6", labels=LABELS, body=grown, annotations=marked, deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    counts = []
    for old, new in pairwise(told):
        handler.on_update(old, new)
        counts.append(len(keys.all))
    assert [1, 1, 2, 3, 4] == counts
    handler.on_delete(told[-1])
    assert ["ns/basic"] * 5 == keys.all
