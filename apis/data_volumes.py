"""The owner of the data in a volume claim, from its labels and annotations (objects.md 13.1, lifecycle.md F40)."""

from collections.abc import Mapping
from operator import attrgetter

from apis.components import component_names

COMPONENT_LABEL = "app.kubernetes.io/component"
CLUSTER_ID_LABEL = "tidb.pingcap.com/cluster-id"
MEMBER_ID_LABEL = "tidb.pingcap.com/member-id"
POD_NAME_LABEL = "tidb.pingcap.com/pod-name"
DEFER_DELETING = "tidb.pingcap.com/pvc-defer-deleting"
"""Annotation of a claim whose data is no longer needed (8.9)."""


def clusters_of_claim(name: str, labels: Mapping[str, str]) -> list[str]:
    """The clusters that a claim may belong to, by the pod in its labels, or else by its own name.

    The name is ambiguous: `pd-log-demo-pd-0` may belong to `demo` or `log-demo`.
    """
    labelled = labels.get(POD_NAME_LABEL)
    stem, _, ordinal = (labelled or name).rpartition("-")
    cluster = stem.removesuffix(f"-{labels.get(COMPONENT_LABEL, '')}")
    if cluster == stem or not ordinal.isdecimal():
        return []
    if labelled:
        return [cluster]
    parts = cluster.split("-")
    return ["-".join(parts[first:]) for first in range(1, len(parts))]


def is_claim_of(cluster: str, name: str, labels: Mapping[str, str]) -> bool:
    """True if a claim belongs to a pod of a cluster. The instance label alone is no proof: several clusters may share
    it."""
    return cluster in clusters_of_claim(name, labels)


def cluster_id_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The id of the PD cluster whose data is in a claim; empty if the data is no longer needed."""
    if labels.get(COMPONENT_LABEL) not in component_names(attrgetter("claims.hold_data")):
        return ""
    return "" if DEFER_DELETING in annotations else labels.get(CLUSTER_ID_LABEL, "")
