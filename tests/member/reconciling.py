"""A reconcile context in front of an API server as small as can be."""

from typing import cast

import msgspec

from apis.tidbcluster import TidbCluster
from dataplane.clients import DataPlane
from kube.apply import Applier
from kube.client import Client
from kube.events import EventRecorder
from kube.objects import Json, Object
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from kube.secret_reads import SecretReads
from member.context import Dependencies, Listers, ReconcileContext, Settings
from ports.clock import FakeClock
from ports.randomness import SystemRandomness
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster

CLUSTER_PATH = TIDB_CLUSTERS.path("ns", "demo")


def context(api: FakeApi, tc: TidbCluster | None = None) -> ReconcileContext:
    """The context of a reconcile of the cluster `demo`, which exists, with no pods; nothing is cached."""
    client, clock = Client(api), FakeClock()
    owner = api.put(CLUSTER_PATH, {"metadata": {"name": "demo", "namespace": "ns", "uid": "uid-1"}, "spec": {}})
    api.put(PODS.path("ns"), {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []})
    recorder = EventRecorder(client, clock, SystemRandomness())
    dataplane, listers = cast("DataPlane", None), cast("Listers", None)
    deps = Dependencies(
        client=client,
        secrets=SecretReads(client),
        applier=Applier(client, clock),
        dataplane=dataplane,
        recorder=recorder,
        clock=clock,
        settings=Settings("discovery"),
        listers=listers,
    )
    return ReconcileContext(as_object(owner), tc or cluster(), deps)


def as_object(body: Json) -> Object:
    """An object, as a cache holds it."""
    return Object(msgspec.json.encode(body))


def put_stateful_set(api: FakeApi, body: Json) -> Object:
    """Create a StatefulSet, and cache it."""
    return as_object(api.put(STATEFUL_SETS.path("ns", body["metadata"]["name"]), body))
