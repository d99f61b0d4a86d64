"""The TidbClusters that form one database, for settings of the whole database (backup.md 4.4)."""

from itertools import permutations

import msgspec
import pytest

from apis.consent import ALLOWED_FROM, BY_CONSENT, ReferencePolicy, parse_policy
from apis.shared import Json
from kube.objects import Object
from member.observed.restores import into, joined

KEYS = [("ns", name) for name in ("a", "b", "c")]


def joining(name: str, host: Json | None) -> Object:
    spec = {"cluster": host} if host else {}
    body = {"apiVersion": "v1", "kind": "TidbCluster", "metadata": {"name": name, "namespace": "ns"}, "spec": spec}
    return Object(msgspec.json.encode(body))


@pytest.mark.parametrize("names", list(permutations("abc")))
@pytest.mark.parametrize("shape", ["chain", "star", "cycle"])
def test_clusters_that_join_each_other_in_any_way_are_one_database(names: tuple[str, ...], shape: str) -> None:
    first, second, third = names
    hosts = {
        "chain": {second: first, third: second},
        "star": {second: first, third: first},
        "cycle": {first: third, second: first, third: second},
    }[shape]
    clusters = [joining(name, {"name": hosts[name]} if name in hosts else None) for name in "abc"]
    clusters.append(joining("stranger", {"name": "a", "namespace": "elsewhere"}))
    assert {frozenset(KEYS)} == {frozenset(joined(key, clusters, BY_CONSENT)) for key in KEYS}


@pytest.mark.parametrize(
    ("annotations", "references", "database"),
    [
        ({}, BY_CONSENT, {("ns", "a")}),
        ({ALLOWED_FROM: "others"}, BY_CONSENT, {("ns", "a")}),
        ({ALLOWED_FROM: "elsewhere"}, BY_CONSENT, {("ns", "a"), ("elsewhere", "guest")}),
        ({}, parse_policy("elsewhere:ns"), {("ns", "a"), ("elsewhere", "guest")}),
    ],
)
def test_a_cluster_of_another_namespace_joins_by_consent(
    annotations: Json, references: ReferencePolicy, database: set[tuple[str, str]]
) -> None:
    """Else a Restore of its namespace would restart this cluster's TiKV."""
    host = {"apiVersion": "v1", "kind": "TidbCluster", "spec": {}}
    metadata = {"name": "a", "namespace": "ns", "annotations": annotations}
    guest = {"name": "guest", "namespace": "elsewhere"}
    bodies = [host | {"metadata": metadata}, host | {"metadata": guest, "spec": {"cluster": metadata}}]
    assert database == joined(("ns", "a"), [Object(msgspec.json.encode(each)) for each in bodies], references)


@pytest.mark.rule("RPL-4")
@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["SnapshotRestore"], ("ns", "a")),
        (["SnapshotRestore", "SnapshotRestored", "CompactSettled"], ("ns", "a")),
        (["SnapshotRestore", "LogRestore"], ("ns", "a")),
        (["SnapshotRestore", "LogRestore", "Running", "Complete"], None),
        (["SnapshotRestore", "Failed"], None),
        ([], None),
    ],
)
def test_tikv_keeps_its_garbage_during_both_steps_of_a_replication_restore(
    conditions: list[str], expected: tuple[str, str] | None
) -> None:
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions]}
    spec = {"restoreMode": "pitr", "br": {"cluster": "a"}, "replicationConfig": {"compactBackupName": "logs"}}
    body = {"apiVersion": "v1", "kind": "Restore", "metadata": {"name": "r", "namespace": "ns"}}
    assert expected == into(Object(msgspec.json.encode(body | {"spec": spec, "status": status})))
