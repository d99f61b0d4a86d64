"""PD of a TidbCluster in another namespace is dialled by its consent only."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from apis.consent import ALLOWED_FROM
from dataplane.errors import NotInCluster
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS
from member import api_clients
from member.context import Listers, ReconcileContext
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.reconciling import as_object, context

URL = "http://vault-pd.owner.svc:2379"


class Cache:
    """A cache that shows one cluster, or none."""

    def __init__(self, shown: Object | None) -> None:
        self._shown = shown

    def get(self, namespace: str, name: str) -> Object | None:
        is_shown = self._shown is not None and (namespace, name) == ("owner", "vault")
        return self._shown if is_shown else None


def joining(annotations: Json | None, *, is_cached: bool = True, **spec: Any) -> ReconcileContext:
    """A reconcile of a cluster that names one of another namespace; None: which does not exist."""
    api, shown = FakeApi(), None
    if annotations is not None:
        meta = {"name": "vault", "namespace": "owner", "annotations": annotations}
        shown = as_object(api.put(TIDB_CLUSTERS.path("owner", "vault"), {"metadata": meta}))
    ctx = context(api, cluster(**spec))
    cache = SimpleNamespace(tidb_clusters=Cache(shown if is_cached else None))
    ctx.listers = cast("Listers", cache)
    return ctx


@pytest.mark.parametrize(
    ("annotations", "is_dialled"),
    [(None, True), ({}, False), ({ALLOWED_FROM: "other"}, False), ({ALLOWED_FROM: "ns"}, True)],
    ids=["elsewhere", "silent", "of-others", "consenting"],
)
def test_an_announced_host_of_pd_addresses_is_dialled_by_consent(annotations: Json | None, is_dialled: bool) -> None:
    ctx = joining(annotations, pdAddresses=[URL])
    assert is_dialled == (api_clients.reachable_pd_member(ctx, URL) is not None)


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("annotations", [None, {}, {ALLOWED_FROM: "other"}])
def test_pd_of_a_cluster_without_consent_is_not_asked(annotations: Json | None, is_cached: bool) -> None:
    ctx = joining(annotations, is_cached=is_cached, without=("pd",), cluster={"name": "vault", "namespace": "owner"})
    with pytest.raises(NotInCluster, match="kubectl -n owner annotate tidbcluster vault"):
        api_clients.pd(ctx)


def test_a_cluster_that_the_cache_lacks_is_seen_to_consent() -> None:
    reference = {"name": "vault", "namespace": "owner"}
    ctx = joining({ALLOWED_FROM: "ns"}, is_cached=False, without=("pd",), cluster=reference)
    assert not api_clients.reference_refusal(ctx)


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("http://basic-pd.b:2379", [("b", "basic")]),
        ("https://basic-pd.b.svc.cluster.local.:2379", [("b", "basic")]),
        ("BASIC-PD.B.SVC", [("b", "basic")]),
        ("http://basic-pd-2.basic-pd-peer.b.svc:2379", [("b", "basic")]),
        ("http://pd.example.com:2379", []),
        ("http://10.0.0.1:2379", []),
    ],
)
def test_clusters_are_named_by_hosts(address: str, named: list[tuple[str, str]]) -> None:
    assert named == api_clients.clusters_of_addresses([address])
