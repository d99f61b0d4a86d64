"""The rights of Prometheus: to find pods (other-resources.md 3.4)."""

from apis.monitors import TidbMonitor
from kube.objects import Json
from kube.resources import CLUSTER_ROLES, ROLES, Resource
from member.monitor.naming import base_labels, cluster_role_name, monitor_name, object_meta

_RULES: list[Json] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


def service_account(monitor: TidbMonitor) -> Json:
    """The service account of the pods."""
    token = monitor.spec.automount_service_account_token
    account: Json = {"metadata": object_meta(monitor, monitor_name(monitor))}
    return account if token is None else account | {"automountServiceAccountToken": token}


def role(monitor: TidbMonitor) -> Json:
    """The Role, or the ClusterRole of a monitor that is clusterScoped."""
    return {"metadata": _meta(monitor), "rules": _RULES}


def role_binding(monitor: TidbMonitor) -> Json:
    """The binding of the role to the pods' service account."""
    kind: Resource = CLUSTER_ROLES if monitor.spec.cluster_scoped else ROLES
    meta = _meta(monitor)
    return {
        "metadata": meta,
        "roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": meta["name"]},
        "subjects": [
            {"kind": "ServiceAccount", "name": monitor_name(monitor), "namespace": monitor.metadata.namespace}
        ],
    }


def _meta(monitor: TidbMonitor) -> Json:
    """Metadata of a role or binding. A namespaced monitor cannot own cluster-scoped objects."""
    if monitor.spec.cluster_scoped:
        meta = monitor.metadata
        return {"name": cluster_role_name(meta.namespace, meta.name), "labels": base_labels(monitor)}
    return object_meta(monitor, monitor_name(monitor))
