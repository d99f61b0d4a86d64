"""Facts about an object's tree that several checks use."""

from apis.components import component_type, status_section
from kube.objects import Json

Found = tuple[str, str]
"""A rule and its violation."""

DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"
DDL_PAUSED = "tidb.pingcap.com/smooth-upgrade-ddl-paused"

EVICT = ("tidb.pingcap.com/evict-leader", "tidb.pingcap.com/evict-leader-for-resize")
"""Annotations that move the leaders off a TiKV pod."""

REPLACE = ("tidb.pingcap.com/replace-volume", "tidb.pingcap.com/volume-replacement-begun")
"""Annotations that request new volumes of a pod, and that record the start of the replacement."""

COMMANDS = (*EVICT, *REPLACE, "tidb.pingcap.com/pd-transfer-leader", "tidb.pingcap.com/tidb-graceful-shutdown")
"""Annotations that request restarts of a pod."""


def annotations(tree: Json | None) -> Json:
    """The annotations of an object, empty without one."""
    return (tree or {}).get("metadata", {}).get("annotations") or {}


def name_of(tree: Json) -> str:
    """The name of an object."""
    return str(tree["metadata"]["name"])


def phase_of(tree: Json) -> str:
    """The phase of an object, empty without one."""
    return str((tree.get("status") or {}).get("phase") or "")


def is_replaced(pod: Json | None) -> bool:
    """True if a pod is to get new volumes."""
    return any(each in annotations(pod) for each in REPLACE)


def spec_of(cluster: Json | None, component: str) -> Json:
    """The section of a component in the spec; of a microservice only while PD uses it."""
    spec: Json = (cluster or {}).get("spec") or {}
    for entry in spec.get("pdms") or ():
        if entry.get("name") == component and (spec.get("pd") or {}).get("mode") == "ms":
            section: Json = entry
            return section
    if (own := spec.get(component)) or "-" not in component:
        return own or {}
    # a part of full-text search, such as tici-meta
    first, _, part = component.partition("-")
    return (spec.get(first) or {}).get(part) or {}


def status_of(cluster: Json | None, component: str) -> Json:
    """The section of a component in the status."""
    return status_section((cluster or {}).get("status") or {}, component)


def kind_of_record(component: str) -> str:
    """The status field with a component's failure records."""
    return "failureStores" if component_type(component).is_store else "failureMembers"


def records(cluster: Json | None, component: str) -> Json:
    """The stored failure records of a component."""
    return status_of(cluster, component).get(kind_of_record(component)) or {}


def asked_for(cluster: Json | None, component: str) -> int:
    """The number of pods that the spec requires."""
    return int(spec_of(cluster, component).get("replicas", 0))


def parallelism(cluster: Json | None, component: str, *, out: bool) -> int:
    """The number of pods of a component that may be created or removed at a time."""
    policy = spec_of(cluster, component).get("scalePolicy") or {}
    return 1 if component == "pd" else int(policy.get("scaleOutParallelism" if out else "scaleInParallelism") or 1)


def is_suspended(cluster: Json | None, component: str) -> bool:
    """True if the user has suspended a component; its own setting comes first."""
    action = spec_of(cluster, component).get("suspendAction") or spec_of(cluster, "suspendAction")
    return bool(action.get("suspendStatefulSet"))


def is_rolled_by_hand(cluster: Json | None, component: str) -> bool:
    """True if the user restarts the pods of a component: Kubernetes then never calls the newest revision current."""
    own, whole = spec_of(cluster, component), (cluster or {}).get("spec") or {}
    found = own.get("statefulSetUpdateStrategy") or whole.get("statefulSetUpdateStrategy")
    return bool(found == "OnDelete")


def is_held(cluster: Json | None) -> bool:
    """True if the cluster is paused or being deleted."""
    tree = cluster or {}
    return bool((tree.get("spec") or {}).get("paused") or (tree.get("metadata") or {}).get("deletionTimestamp"))


def is_refused(cluster: Json | None) -> bool:
    """True if the operator reports the spec as invalid and leaves what runs unchanged."""
    said = conditions((cluster or {}).get("status") or {})
    return bool(said.get("Progressing", {}).get("reason") == "InvalidSpec")


def conditions(status: Json) -> dict[str, Json]:
    """The conditions in a status by type."""
    return {condition.get("type", ""): condition for condition in status.get("conditions") or ()}


def says_ready(status: Json) -> bool:
    """True if a status has Ready=True."""
    return bool(conditions(status).get("Ready", {}).get("status") == "True")
