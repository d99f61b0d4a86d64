"""Pods of stores in other TidbClusters with the same PD (objects.md 8), if they are in this Kubernetes cluster."""

import re

from kube.objects import Object
from member.context import ReconcileContext
from member.labels import CONTROLLER_REVISION_HASH
from member.objects.stateful_set import lowest_restarted

_ADDRESS = re.compile(
    r"(?P<pod>(?P<set>[^.]+)-(?P<ordinal>\d+))\.[^.]+\.(?P<namespace>[^.]+)\.svc(\.(?P<domain>.+))?:\d+"
)
"""The address that a store advertises: pod, headless Service, namespace and, optionally, the Kubernetes domain."""


def peer_pod(ctx: ReconcileContext, address: str) -> tuple[Object | None, bool]:
    """The cached pod at a store's address, and True if the pod is expected to stay.

    A pod does not stay while it is missing or terminating, or while its StatefulSet still has to restart it. Nothing is
    known of a pod in another Kubernetes cluster, i.e. with another domain: (None, True).
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or (found["domain"] or ctx.tc.spec.cluster_domain) != ctx.tc.spec.cluster_domain:
        return None, True
    owner = ctx.listers.stateful_sets.get(found["namespace"], found["set"])
    if owner is None:
        return None, True
    pod, body = ctx.listers.pods.get(found["namespace"], found["pod"]), owner.decode()
    if pod is None or pod.metadata.deletion_timestamp:
        return pod, False
    newest = (body.get("status") or {}).get("updateRevision")
    outdated = pod.metadata.labels.get(CONTROLLER_REVISION_HASH) != newest
    reached = int(found["ordinal"]) >= lowest_restarted(body["spec"]["updateStrategy"], body["spec"]["replicas"])
    return pod, not (newest and outdated and reached)
