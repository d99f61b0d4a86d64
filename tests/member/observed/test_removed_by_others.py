"""Members removed from PD by other clients, and by the operator itself."""

import pytest

from apis.shared import TiKVFailureStore, TiKVStore
from kube.objects import Json
from member.labels import STORE_ID
from member.observed.troubles import removal_by_others
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.reconciling import as_object, context

_REPLACING = {"tidb.pingcap.com/replace-volume": "true"}


def told(*, ordinal: int = 1, annotations: Json | None = None, state: str = "gone") -> str:
    """The message about a pod of three whose store 7 has left PD."""
    tc, name = cluster(tikv={"replicas": 3}), f"demo-tikv-{ordinal}"
    tc.status.tikv.synced = state != "unknown"
    store = TiKVStore(id="7", pod_name=name, ip="demo-tikv-1", leader_count=0, state="Tombstone")
    if state == "there":
        tc.status.tikv.stores = {"7": store}
    else:
        tc.status.tikv.tombstone_stores = {"7": store}
    if state == "recorded":
        tc.status.tikv.failure_stores = {"7": TiKVFailureStore(pod_name=name, store_id="7")}
    meta: Json = {"name": name, "namespace": "ns", "labels": {STORE_ID: "7"}, "annotations": annotations or {}}
    return removal_by_others(context(FakeApi(), tc), "tikv", as_object({"metadata": meta, "spec": {}}))


def test_the_message_names_the_way_out() -> None:
    assert "store 7 was removed from PD" in told()
    assert "kubectl annotate pod demo-tikv-1 tidb.pingcap.com/replace-volume=true" in told()


@pytest.mark.parametrize("state", ["there", "unknown", "recorded"])
def test_known_unknown_and_replaced_members_were_not_removed_by_foreign_clients(state: str) -> None:
    assert not told(state=state)


def test_members_removed_by_a_scale_in_or_a_command_were_not_removed_by_foreign_clients() -> None:
    assert not told(ordinal=3)
    assert not told(annotations=_REPLACING)
