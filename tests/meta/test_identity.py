"""The ids of pods, claims and volumes (lifecycle.md 11.4)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apis.shared import TiKVStore
from apis.times import stamp
from kube.objects import Object
from member.labels import (
    CLUSTER_ID,
    COMPONENT,
    MEMBER_ID,
    NAMESPACE,
    POD_NAME,
    PVC_DEFER_DELETING,
    STORE_ID,
    TIKV_NO_ACTIVE_STORE_SINCE,
)
from meta import identity
from meta.identity import store_of
from meta.metadata import DesiredMetadata
from tests.member.clusters import cluster
from tests.member.recordings import Recording
from tests.meta.objects import base, claim, pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SINCE = "2026-01-02T03:04:05Z"
PD = {"synced": True, "members": {"demo-pd-0": {"name": "demo-pd-0", "id": "11", "clientURL": "u", "health": True}}}


def store(store_id: str, state: str = "Up", pod_name: str = "demo-tikv-0") -> dict[str, Any]:
    return {"id": store_id, "podName": pod_name, "ip": "", "leaderCount": 0, "state": state}


def ago(seconds: float) -> str:
    return stamp(NOW - timedelta(seconds=seconds))


def marks(there: Object, *, cluster_id: str = "7", without_store: float = 30.0, **status: Any) -> DesiredMetadata:
    return identity.of_pod(cluster(status=status), cluster_id, there, lambda: NOW, lambda: without_store)


def tikv(*stores: dict[str, Any], synced: bool = True) -> dict[str, Any]:
    return {"synced": synced, "bootStrapped": True, "stores": {each["id"]: each for each in stores}}


@pytest.mark.rule("lifecycle-11.4")
def test_a_pod_of_pd_gets_the_id_of_its_member() -> None:
    assert {CLUSTER_ID: "7", MEMBER_ID: "11"} == marks(pod("demo-pd-0", "pd"), pd=PD).labels


@pytest.mark.rule("lifecycle-11.4")
def test_a_member_may_have_its_long_name() -> None:
    long = {"x": PD["members"]["demo-pd-0"] | {"name": "demo-pd-0.demo-pd-peer.ns.svc"}}  # type: ignore[index]
    assert "11" == marks(pod("demo-pd-0", "pd"), pd=PD | {"members": long}).labels[MEMBER_ID]


@pytest.mark.rule("F50")
def test_the_member_id_follows_the_present_member() -> None:
    relabelled = marks(pod("demo-pd-0", "pd", labels={MEMBER_ID: "9"}), pd=PD)
    assert "11" == relabelled.labels[MEMBER_ID]


@pytest.mark.rule("F7")
def test_ids_stay_unchanged_while_pd_does_not_answer() -> None:
    assert {} == marks(pod("demo-pd-0", "pd"), cluster_id="", pd=PD | {"synced": False}).labels
    silent = marks(pod("demo-tikv-0", "tikv", labels={STORE_ID: "4"}), tikv=tikv(store("5"), synced=False))
    assert DesiredMetadata({CLUSTER_ID: "7"}) == silent


@pytest.mark.rule("lifecycle-11.4")
def test_tidb_and_discovery_get_the_cluster_id_alone() -> None:
    for kind in ("tidb", "discovery"):
        assert DesiredMetadata({CLUSTER_ID: "7"}) == marks(pod(f"demo-{kind}-0", kind), pd=PD, tikv=tikv(store("4")))


@pytest.mark.rule("lifecycle-11.4")
def test_a_pod_of_tikv_gets_the_id_of_its_store() -> None:
    found = marks(pod("demo-tikv-0", "tikv"), tikv=tikv(store("4"), store("5", pod_name="demo-tikv-1")))
    assert DesiredMetadata({CLUSTER_ID: "7", STORE_ID: "4"}, without=(TIKV_NO_ACTIVE_STORE_SINCE,)) == found


@pytest.mark.parametrize(
    ("stores", "labelled", "expected"),
    [
        ([], "", ""),
        ([], "4", ""),
        ([store("4", "Down"), store("5")], "4", "5"),
        ([store("4"), store("5")], "4", "4"),
        ([store("4", "Down"), store("10", "Down")], "", "10"),
        ([store("4"), store("10", "Offline")], "", "4"),
        ([store("4"), store("5", pod_name="demo-tikv-1")], "5", "4"),
    ],
    ids=["none", "none any more", "old one is not Up", "old one is Up", "newest", "Up wins", "another pod's"],
)
@pytest.mark.rule("lifecycle-11.4")
def test_the_store_id_is_overwritten_unless_the_old_store_is_up(
    stores: list[dict[str, Any]], labelled: str, expected: str
) -> None:
    known = {each["id"]: msgspec.convert(each, TiKVStore) for each in stores}
    assert expected == store_of(known, "demo-tikv-0", labelled)


@pytest.mark.rule("lifecycle-8.5")
def test_records_once_since_when_a_pod_has_no_store() -> None:
    labelled = {STORE_ID: "4"}
    first = marks(pod("demo-tikv-0", "tikv", labels=labelled), tikv=tikv())
    assert DesiredMetadata({CLUSTER_ID: "7"}, {TIKV_NO_ACTIVE_STORE_SINCE: SINCE}) == first
    noted = pod("demo-tikv-0", "tikv", labels=labelled, annotations={TIKV_NO_ACTIVE_STORE_SINCE: "earlier"})
    assert {TIKV_NO_ACTIVE_STORE_SINCE: "earlier"} == marks(noted, tikv=tikv()).annotations


@pytest.mark.rule("lifecycle-8.5")
def test_one_answer_without_a_store_does_not_record_that_a_pod_has_none() -> None:
    labelled = pod("demo-tikv-0", "tikv", labels={STORE_ID: "4"})
    assert {} == marks(labelled, tikv=tikv(), without_store=29.9).annotations
    assert {TIKV_NO_ACTIVE_STORE_SINCE} == marks(labelled, tikv=tikv(), without_store=30.0).annotations.keys()


@pytest.mark.parametrize(
    ("there", "status", "seconds"),
    [
        (pod("demo-pd-0", "pd", creationTimestamp=ago(65)), {}, 115),
        (pod("demo-pd-0", "pd", creationTimestamp=ago(65)), {"pd": PD}, 0),
        (pod("demo-pd-0", "pd", creationTimestamp=ago(180)), {}, 0),
        (pod("demo-pd-0", "pd", creationTimestamp=ago(-86400)), {}, 0),
        (pod("demo-tidb-0", "tidb", creationTimestamp=ago(65)), {}, 0),
        (pod("demo-pd-0", "pd", creationTimestamp=ago(65), labels={CLUSTER_ID: "7"}), {}, 0),
    ],
    ids=["new", "joined", "late", "by another clock", "not to join", "labelled before"],
)
@pytest.mark.rule("lifecycle-11.4")
def test_a_pod_that_is_about_to_join_is_labelled_once_it_has(
    there: Object, status: dict[str, Any], seconds: float
) -> None:
    assert seconds == identity.joins_within(there, marks(there, **status), lambda: NOW)


@pytest.mark.parametrize(
    ("there", "seconds"),
    [
        (claim("demo-tikv-0", "tikv", creationTimestamp=ago(65)), 125),
        (claim("demo-tikv-0", "tikv", creationTimestamp=ago(65), labels={CLUSTER_ID: "7"}), 0),
        (claim("demo-tikv-0", "tikv", creationTimestamp=ago(65), annotations={PVC_DEFER_DELETING: SINCE}), 0),
        (claim("demo-tikv-0", "tikv", creationTimestamp=ago(180)), 10),
        (claim("demo-tikv-0", "tikv", creationTimestamp=ago(190)), 0),
    ],
    ids=["new", "labelled", "left behind", "its pod is labelled now", "late"],
)
@pytest.mark.rule("lifecycle-11.4")
def test_a_volume_is_labelled_once_its_claim_is(there: Object, seconds: float) -> None:
    assert seconds == identity.is_labelled_within(there, lambda: NOW)


@pytest.mark.parametrize("recording", ["basic", "basic-storagevolumes", "gcp"])
@pytest.mark.rule("lifecycle-11.4")
def test_claims_get_exactly_what_v1_6_gave_them(recording: str) -> None:
    recorded = Recording(recording)
    (tc,) = recorded.clusters
    for item in recorded.claims:
        meta = item["metadata"]
        base_labels = {key: value for key, value in meta["labels"].items() if key.startswith("app.kubernetes.io/")}
        body = {"metadata": {"name": meta["labels"][POD_NAME], "labels": base_labels}}
        bare = Object(msgspec.json.encode(body))
        body["metadata"]["labels"] |= identity.of_pod(tc, tc.status.cluster_id, bare, lambda: NOW, lambda: 0.0).labels
        found = identity.of_claim(tc, Object(msgspec.json.encode(body)))
        assert meta["labels"] == found.labels
        assert found.annotations.items() <= meta["annotations"].items()


@pytest.mark.rule("lifecycle-11.4")
def test_a_claim_loses_the_ids_of_the_pod_that_had_it_before() -> None:
    there = claim("demo-tikv-0", "tikv", labels={STORE_ID: "4"})
    found = identity.of_claim(cluster(), pod("demo-tikv-0", "tikv", labels={CLUSTER_ID: "7", STORE_ID: "5"}))
    assert not found.matches(there)
    assert "5" == found.labels[STORE_ID]


@pytest.mark.rule("lifecycle-11.4")
def test_a_volume_gets_what_its_claim_has() -> None:
    found = identity.of_volume(claim("demo-tikv-0", "tikv", labels={STORE_ID: "5", "mine": "x"}))
    assert DesiredMetadata(base("tikv") | {NAMESPACE: "ns", STORE_ID: "5"}, {POD_NAME: "demo-tikv-0"}) == found
    assert "tikv" == found.labels[COMPONENT]
