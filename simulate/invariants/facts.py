"""What invariants of several subjects ask of a cluster's tree."""

from apis.components import component_type
from kube.objects import Json

DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"
DDL_PAUSED = "tidb.pingcap.com/smooth-upgrade-ddl-paused"

EVICT = ("tidb.pingcap.com/evict-leader", "tidb.pingcap.com/evict-leader-for-resize")
"""Annotations that let a TiKV pod lead nothing."""

REPLACE = ("tidb.pingcap.com/replace-volume", "tidb.pingcap.com/volume-replacement-begun")
"""Annotations for new volumes of a pod, and for having begun to replace them."""

COMMANDS = (*EVICT, *REPLACE, "tidb.pingcap.com/pd-transfer-leader", "tidb.pingcap.com/tidb-graceful-shutdown")
"""Annotations after which a pod may be restarted."""


def annotations(tree: Json | None) -> Json:
    """Those of an object, none of one that is not there."""
    return (tree or {}).get("metadata", {}).get("annotations") or {}


def is_replaced(pod: Json | None) -> bool:
    """Whether a pod is to get new volumes."""
    return any(each in annotations(pod) for each in REPLACE)


def spec_of(cluster: Json | None, component: str) -> Json:
    """What a cluster's spec says of a component; of a microservice only while PD leaves its work to it."""
    spec: Json = (cluster or {}).get("spec") or {}
    entry: Json | None = next((each for each in spec.get("pdms") or () if each.get("name") == component), None)
    if entry is not None and (spec.get("pd") or {}).get("mode") == "ms":
        return entry
    return spec.get(component) or {}


def status_of(cluster: Json | None, component: str) -> Json:
    """What a cluster's status says of a component."""
    status = (cluster or {}).get("status") or {}
    return status.get(component) or (status.get("pdms") or {}).get(component) or {}


def kind_of_record(component: str) -> str:
    """The field of a component's status that holds its failure records."""
    return "failureStores" if component_type(component).is_store else "failureMembers"


def records(cluster: Json | None, component: str) -> Json:
    """The failure records of a component that are stored."""
    return status_of(cluster, component).get(kind_of_record(component)) or {}


def asked_for(cluster: Json | None, component: str) -> int:
    """The pods of a component that the spec asks for."""
    return int(spec_of(cluster, component).get("replicas", 0))


def parallelism(cluster: Json | None, component: str, *, out: bool) -> int:
    """How many pods of a component may come or go at a time."""
    policy = spec_of(cluster, component).get("scalePolicy") or {}
    return 1 if component == "pd" else int(policy.get("scaleOutParallelism" if out else "scaleInParallelism") or 1)


def is_suspended(cluster: Json | None, component: str) -> bool:
    """Whether the user wants no pod of a component to run; what is said of the component goes first."""
    action = spec_of(cluster, component).get("suspendAction") or spec_of(cluster, "suspendAction")
    return bool(action.get("suspendStatefulSet"))


def is_rolled_by_hand(cluster: Json | None, component: str) -> bool:
    """Whether the user restarts the pods of a component: Kubernetes never calls the newest revision current then."""
    own, whole = spec_of(cluster, component), (cluster or {}).get("spec") or {}
    found = own.get("statefulSetUpdateStrategy") or whole.get("statefulSetUpdateStrategy")
    return bool(found == "OnDelete")


def is_held(cluster: Json | None) -> bool:
    """Whether the user wants nothing to be done: paused, or being deleted."""
    tree = cluster or {}
    return bool((tree.get("spec") or {}).get("paused") or (tree.get("metadata") or {}).get("deletionTimestamp"))


def is_refused(cluster: Json | None) -> bool:
    """Whether the operator says that the spec is not valid, and leaves what runs as it is."""
    said = conditions((cluster or {}).get("status") or {})
    return bool(said.get("Progressing", {}).get("reason") == "InvalidSpec")


def conditions(status: Json) -> dict[str, Json]:
    """The conditions in a status by type."""
    return {each.get("type", ""): each for each in status.get("conditions") or ()}


def says_ready(status: Json) -> bool:
    """Whether a status says Ready=True."""
    return bool(conditions(status).get("Ready", {}).get("status") == "True")
