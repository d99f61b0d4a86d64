"""What invariants of several subjects ask of a cluster's tree."""

from apis.components import component_type
from kube.objects import Json

DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"
DDL_PAUSED = "tidb.pingcap.com/smooth-upgrade-ddl-paused"

EVICT = ("tidb.pingcap.com/evict-leader", "tidb.pingcap.com/evict-leader-for-resize")
"""What tells a TiKV pod to lead nothing."""

REPLACE = ("tidb.pingcap.com/replace-volume", "tidb.pingcap.com/volume-replacement-begun")
"""What tells a pod to get new volumes, and what says that it has begun to."""

COMMANDS = (*EVICT, *REPLACE, "tidb.pingcap.com/pd-transfer-leader", "tidb.pingcap.com/tidb-graceful-shutdown")
"""What tells a pod to go."""


def annotations(tree: Json | None) -> Json:
    """Those of an object, none of one that is not there."""
    return (tree or {}).get("metadata", {}).get("annotations") or {}


def is_replaced(pod: Json | None) -> bool:
    """Whether a pod is to get new volumes."""
    return any(each in annotations(pod) for each in REPLACE)


def spec_of(cluster: Json | None, part: str) -> Json:
    """What a cluster's spec says of a component."""
    return ((cluster or {}).get("spec") or {}).get(part) or {}


def status_of(cluster: Json | None, part: str) -> Json:
    """What a cluster's status says of a component."""
    return ((cluster or {}).get("status") or {}).get(part) or {}


def kind_of_record(part: str) -> str:
    """The field of a component's status that holds its failure records."""
    return "failureStores" if component_type(part).is_store else "failureMembers"


def records(cluster: Json | None, part: str) -> Json:
    """The failure records of a component that are stored."""
    return status_of(cluster, part).get(kind_of_record(part)) or {}


def asked_for(cluster: Json | None, part: str) -> int:
    """The pods of a component that the spec asks for."""
    return int(spec_of(cluster, part).get("replicas", 0))


def parallelism(cluster: Json | None, part: str, *, out: bool) -> int:
    """How many pods of a component may come or go at a time."""
    policy = spec_of(cluster, part).get("scalePolicy") or {}
    return 1 if part == "pd" else int(policy.get("scaleOutParallelism" if out else "scaleInParallelism") or 1)


def is_suspended(cluster: Json | None, part: str) -> bool:
    """Whether the user wants no pod of a component to run; what is said of the component goes first."""
    action = spec_of(cluster, part).get("suspendAction") or spec_of(cluster, "suspendAction")
    return bool(action.get("suspendStatefulSet"))


def is_held(cluster: Json | None) -> bool:
    """Whether the user wants nothing to be done: paused, or being deleted."""
    tree = cluster or {}
    return bool((tree.get("spec") or {}).get("paused") or (tree.get("metadata") or {}).get("deletionTimestamp"))


def conditions(status: Json) -> dict[str, Json]:
    """The conditions in a status by type."""
    return {each["type"]: each for each in status.get("conditions") or ()}


def says_ready(status: Json) -> bool:
    """Whether a status says Ready=True."""
    return bool(conditions(status).get("Ready", {}).get("status") == "True")
