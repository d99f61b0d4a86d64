"""Stores of another cluster with the same PD: their pods say whether they are being restarted (F13, objects.md 8)."""

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from dataplane.pd import Store
from kube.objects import Json, Object
from member.context import Listers, ReconcileContext
from member.stores.kind import TIKV_STORES
from member.stores.reports import not_up
from tests.kube.fakes import FakeApi
from tests.member.reconciling import as_object, context

STARTED = "2026-01-01T00:01:00Z"
STARTED_SECONDS = 1767225660

REVISION = "controller-revision-hash"
HOST = "other-tikv-1.other-tikv-peer.elsewhere.svc"
PEER = Store(7, f"{HOST}:20160", "Up", region_count=10, start_timestamp=STARTED_SECONDS + 3)
RESTARTING = f"store 7 ({HOST}:20160) has not reported to PD since its restart"


@dataclass
class _Lister:
    """A cache of one object."""

    body: Json | None

    def get(self, namespace: str, name: str) -> Object | None:
        meta = (self.body or {}).get("metadata") or {}
        return as_object(self.body) if self.body and (meta["namespace"], meta["name"]) == (namespace, name) else None


def pod(**changes: Any) -> Json:
    meta: Json = {"name": "other-tikv-1", "namespace": "elsewhere", "uid": "uid-1", "labels": {REVISION: "new"}}
    running = {"name": "tikv", "state": {"running": {"startedAt": STARTED}}}
    return {"metadata": meta | changes, "spec": {}, "status": {"containerStatuses": [running]}}


def stateful_set(partition: int = 2) -> Json:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    return {
        "metadata": {"name": "other-tikv", "namespace": "elsewhere"},
        "spec": {"replicas": 2, "updateStrategy": strategy},
        "status": {"updateRevision": "new"},
    }


def trouble(pods: Json | None, sets: Json | None, store: Store = PEER) -> str:
    ctx: ReconcileContext = context(FakeApi())
    listers = replace(cast("Any", _NONE), pods=_Lister(pods), stateful_sets=_Lister(sets))
    ctx.listers = listers
    return not_up(ctx, TIKV_STORES, [store], 1, [])


_NONE = Listers(*[cast("Any", None)] * 10)


@pytest.mark.rule("F13")
def test_a_store_of_another_cluster_that_has_reported_counts() -> None:
    assert "" == trouble(pod(), stateful_set())


@pytest.mark.rule("F13")
def test_a_store_that_has_not_reported_since_its_restart_does_not_count() -> None:
    assert RESTARTING == trouble(pod(), stateful_set(), replace(PEER, start_timestamp=STARTED_SECONDS - 60))


@pytest.mark.parametrize("pods", [None, pod(deletionTimestamp=STARTED)])
@pytest.mark.rule("F13")
def test_a_store_whose_pod_is_away_does_not_count(pods: Json | None) -> None:
    assert RESTARTING == trouble(pods, stateful_set())


@pytest.mark.rule("F13")
def test_the_store_of_the_next_pod_to_restart_does_not_count() -> None:
    outdated = pod(labels={REVISION: "old"})
    assert (RESTARTING, "") == (trouble(outdated, stateful_set(partition=1)), trouble(outdated, stateful_set()))


@pytest.mark.parametrize("host", [f"{HOST}.south.local", "10.0.0.1"])
@pytest.mark.rule("objects-8")
def test_of_one_in_another_kubernetes_nothing_more_is_known(host: str) -> None:
    assert "" == trouble(None, stateful_set(), replace(PEER, address=f"{host}:20160", start_timestamp=0))


@pytest.mark.rule("objects-8")
def test_nor_of_one_whose_stateful_set_is_not_seen() -> None:
    assert "" == trouble(None, None)
