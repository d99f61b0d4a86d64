"""Admission of new pods: the ServiceAccount, the volume with its token, and the priority from its class."""

from kube.objects import Json
from kube.resources import PODS, SERVICE_ACCOUNTS
from sandbox.apiserver import names
from sandbox.apiserver.kinds import PRIORITY_CLASSES
from sandbox.apiserver.refusals import forbidden
from sandbox.apiserver.world import World

_DEFAULT = "default"
_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_PREFIX = "kube-api-access-"
_NAMESPACE = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
_SOURCES: tuple[Json, ...] = (
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": _NAMESPACE}]}},
)
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that every cluster has."""


def give_account(world: World, pod: Json) -> None:
    """Set the account of a new pod and mount its token, in place. Raises Refusal (403) if it does not exist.

    The default account counts as existing, because no controller of the sandbox creates it.
    """
    spec = pod["spec"]
    account = spec.get("serviceAccountName") or _DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    namespace = pod["metadata"]["namespace"]
    if account != _DEFAULT and world.storage.get(SERVICE_ACCOUNTS.plural, f"{namespace}/{account}") is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(PODS, pod["metadata"].get("name", ""), why)
    if not _mounts_token(world, pod["metadata"]["namespace"], account, spec):
        return
    volume = names.generated(_PREFIX, world.randomness)
    unmounted = [container for container in _containers(spec) if not _has_token(container)]
    for container in unmounted:
        mount = {"name": volume, "readOnly": True, "mountPath": _PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if unmounted:
        projected = {"sources": list(_SOURCES), "defaultMode": 0o644}
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": volume, "projected": projected}]


def _mounts_token(world: World, namespace: str, account: str, spec: Json) -> bool:
    """True if the token is mounted; the pod's setting overrides its account's."""
    if spec.get("automountServiceAccountToken") is not None:
        return bool(spec["automountServiceAccountToken"])
    stored = world.storage.get(SERVICE_ACCOUNTS.plural, f"{namespace}/{account}")
    return stored is None or stored.tree().get("automountServiceAccountToken") is not False


def _containers(spec: Json) -> list[Json]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _has_token(container: Json) -> bool:
    return any(mount.get("mountPath") == _PATH for mount in container.get("volumeMounts") or ())


def give_priority(world: World, pod: Json) -> None:
    """Set the priority of a new pod, in place. Raises Refusal (403) if its class does not exist."""
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    if not name:
        return
    stored = world.storage.get(str(PRIORITY_CLASSES), name)
    if stored is None and name not in _SYSTEM:
        raise forbidden(PODS, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found")
    found: Json = stored.tree() if stored is not None else {"value": _SYSTEM[name]}
    spec["priority"] = found.get("value", 0)
    spec["preemptionPolicy"] = found.get("preemptionPolicy") or "PreemptLowerPriority"
