"""v1.6's chart: the objects that matter to users who upgrade a release of it (scheduler-deployment.md 8, 9)."""

from pathlib import Path

import yaml

from kube.objects import Json

_RBAC = "rbac.authorization.k8s.io"
_OPERATOR_IMAGE = "pingcap/tidb-operator:v1.6.6"
_RELEASE = "{{ .Release.Name }}"
_ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]
_SELECTOR = {"app.kubernetes.io/name": "tidb-operator", "app.kubernetes.io/instance": _RELEASE}


def write(directory: Path) -> Path:
    """The chart, in a separate directory. Its pods never run."""
    chart = directory / "of-v16"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "name": "tidb-operator", "version": "v1.6.6"})
    )
    manager, scheduler = _controller_manager("tidb-controller-manager"), _scheduler("tidb-scheduler")
    (chart / "templates" / "all.yaml").write_text(yaml.safe_dump_all([*manager, *scheduler]))
    return chart


def _controller_manager(name: str) -> list[Json]:
    part = "controller-manager"
    flags = ("cluster-scoped=true", "auto-failover=true", "pd-failover-period=5m", "v=2")
    probe = {"tcpSocket": {"port": 6060}, "initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 10}
    container = {
        "name": "tidb-operator",
        "image": _OPERATOR_IMAGE,
        "resources": {"requests": {"cpu": "80m", "memory": "50Mi"}},
        "command": [f"/usr/local/bin/{name}", *(f"-{each}" for each in flags)],
        "env": [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "livenessProbe": probe,
    }
    rules = [
        {"apiGroups": ["pingcap.com"], "resources": ["tidbclusters"], "verbs": _ALL},
        {
            "apiGroups": [_RBAC],
            "resources": ["clusterroles", "roles"],
            "verbs": ["escalate", "create", "get", "update"],
        },
    ]
    return [
        _object("v1", "ServiceAccount", name, part),
        _object(f"{_RBAC}/v1", "ClusterRole", f"{_RELEASE}:{name}", part) | {"rules": rules},
        _binding(f"{_RELEASE}:{name}", f"{_RELEASE}:{name}", name, part),
        _deployment(name, part, {"containers": [container]}),
    ]


def _scheduler(name: str) -> list[Json]:
    part = "scheduler"
    mounts = [{"name": "configs", "mountPath": "/etc/kubernetes"}]
    kube_scheduler = {"name": "kube-scheduler", "image": "kube-scheduler:v1.30.0", "volumeMounts": mounts}
    extender = {"name": name, "image": _OPERATOR_IMAGE, "command": [f"/usr/local/bin/{name}"]}
    volumes = [{"name": "configs", "configMap": {"name": f"{name}-config"}}]
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
    return [
        _object("v1", "ServiceAccount", name, part),
        _object("v1", "ConfigMap", f"{name}-config", part) | {"data": {"scheduler-config.yaml": "profiles: []"}},
        _object(f"{_RBAC}/v1", "ClusterRole", f"{_RELEASE}:{name}", part) | {"rules": rules},
        _binding(f"{_RELEASE}:{name}", f"{_RELEASE}:{name}", name, part),
        _binding(f"{_RELEASE}:kube-scheduler", "system:kube-scheduler", name, part),
        _binding(f"{_RELEASE}:volume-scheduler", "system:volume-scheduler", name, part),
        _deployment(name, part, {"containers": [kube_scheduler, extender], "volumes": volumes}),
    ]


def _deployment(name: str, part: str, pod: Json) -> Json:
    labels = _SELECTOR | {"app.kubernetes.io/component": part}
    template: Json = {"metadata": {"labels": labels}, "spec": pod | {"serviceAccount": name}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return _object("apps/v1", "Deployment", name, part) | {"spec": spec}


def _binding(name: str, role: str, account: str, part: str) -> Json:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "{{ .Release.Namespace }}"}
    binds = {"subjects": [subject], "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": _RBAC}}
    return _object(f"{_RBAC}/v1", "ClusterRoleBinding", name, part) | binds


def _object(version: str, kind: str, name: str, part: str) -> Json:
    more = {"app.kubernetes.io/managed-by": "{{ .Release.Service }}", "helm.sh/chart": "tidb-operator-v1.6.6"}
    labels = _SELECTOR | {"app.kubernetes.io/component": part} | more
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}}
