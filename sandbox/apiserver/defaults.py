"""The API server's defaults for built-in objects (objects.md 11.7, Kubernetes 1.36).

Each function changes its argument. A default never replaces a value, and the zero of a field that cannot be null counts
as no value.
"""

import base64
from collections.abc import Callable, Iterator, Mapping

from kube.objects import Json

_DEFAULT_MODE = 420
_OF_SOURCES: Mapping[str, Json] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "scaleIO": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
}
"""Fields that types of volumes have beside their required ones."""
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def apply_defaults(resource: str, tree: Json) -> None:
    """Fill in the defaults of an object of that resource (`plural.group`)."""
    if default := _DEFAULTS.get(resource):
        default(tree)


def initial_status(resource: str, tree: Json, now: str) -> Json | None:
    """The status of a new object, None when it begins without one."""
    if resource == "pods":
        return {"phase": "Pending", "qosClass": _quality_of_service(tree.get("spec") or {})}
    if resource == "persistentvolumes":
        return {"phase": "Pending", "lastPhaseTransitionTime": now}
    status = _STATUS.get(resource)
    return None if status is None else status()


def _quality_of_service(spec: Json) -> str:
    """Guaranteed if each container limits what it requests, BestEffort if none requests anything."""
    asked = [container.get("resources") or {} for container in _containers(spec)]
    if not any(one.get("requests") or one.get("limits") for one in asked):
        return "BestEffort"
    for one in asked:
        limits, requests = one.get("limits") or {}, one.get("requests") or {}
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _fill(tree: Json, **values: object) -> None:
    for name, value in values.items():
        if tree.get(name) is None:
            tree[name] = value


def _fill_zero(tree: Json, **values: object) -> None:
    """Like `_fill`, for a type whose zero equals a missing field."""
    for name, value in values.items():
        tree[name] = tree.get(name) or value


def _child(tree: Json, name: str) -> Json:
    if tree.get(name) is None:
        tree[name] = {}
    child: Json = tree[name]
    return child


def _pod(tree: Json) -> None:
    spec = _child(tree, "spec")
    pod_spec(spec)
    for container in _containers(spec):
        _of_pods_alone(container, spec.get("hostNetwork"))
    _fill(spec, priority=0, preemptionPolicy="PreemptLowerPriority", enableServiceLinks=True)
    if spec.get("tolerations") is None:
        spec["tolerations"] = []
    tolerated = {toleration.get("key") for toleration in spec["tolerations"]}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not tolerated & {key, None, ""}:
            spec["tolerations"].append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )


def _of_pods_alone(container: Json, on_host: bool | None) -> None:
    """Defaults that pods get but templates do not."""
    resources = container["resources"]
    if limits := resources.get("limits"):
        resources["requests"] = limits | (resources.get("requests") or {})
    if on_host:
        for port in container.get("ports") or ():
            _fill(port, hostPort=port.get("containerPort"))


def pod_spec(spec: Json) -> None:
    """Defaults of a pod or pod template's spec."""
    _fill_zero(spec, restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler")
    _fill(spec, securityContext={}, terminationGracePeriodSeconds=30)
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in _containers(spec):
        _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _containers(spec: Json) -> Iterator[Json]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _container(container: Json) -> None:
    _fill_zero(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy=_pull_policy(container.get("image") or ""),
    )
    _child(container, "resources")
    for port in container.get("ports") or ():
        _fill_zero(port, protocol="TCP")
    for variable in container.get("env") or ():
        if field := (variable.get("valueFrom") or {}).get("fieldRef"):
            _fill_zero(field, apiVersion="v1")
    for name in _PROBES:
        if probe := container.get(name):
            _probe(probe)
    hooks = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        _http_get(hooks.get(name))


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _probe(probe: Json) -> None:
    _fill_zero(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _http_get(probe)
    if grpc := probe.get("grpc"):
        _fill(grpc, service="")


def _http_get(handler: Json | None) -> None:
    if get := (handler or {}).get("httpGet"):
        _fill_zero(get, path="/", scheme="HTTP")


def _volume(volume: Json) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            _fill(volume[source], defaultMode=_DEFAULT_MODE)
    if volume.get("hostPath") is not None:
        _fill(volume["hostPath"], type="")
    if (image := volume.get("image")) is not None:
        _fill_zero(image, pullPolicy=_pull_policy(image.get("reference") or ""))
    for source, defaults in _OF_SOURCES.items():
        if volume.get(source) is not None:
            _fill_zero(volume[source], **defaults)
    _downward_items(volume.get("downwardAPI"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        _downward_items(source.get("downwardAPI"))
        if token := source.get("serviceAccountToken"):
            _fill(token, expirationSeconds=3600)
    if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        _fill(_child(template, "spec"), volumeMode="Filesystem")


def _downward_items(downward: Json | None) -> None:
    for item in (downward or {}).get("items") or ():
        if field := item.get("fieldRef"):
            _fill_zero(field, apiVersion="v1")


def _template(spec: Json) -> None:
    pod_spec(_child(_child(spec, "template"), "spec"))


def _stateful_set(tree: Json) -> None:
    spec = _child(tree, "spec")
    _fill_zero(spec, podManagementPolicy="OrderedReady")
    _fill(spec, replicas=1, revisionHistoryLimit=10)
    strategy = _child(spec, "updateStrategy")
    _fill_zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_child(strategy, "rollingUpdate"), partition=0)
    _fill(_child(spec, "persistentVolumeClaimRetentionPolicy"), whenDeleted="Retain", whenScaled="Retain")
    _template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        _fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
        _fill(_child(claim, "spec"), volumeMode="Filesystem")
        _fill(_child(claim, "status"), phase="Pending")


def _deployment(tree: Json) -> None:
    spec = _child(tree, "spec")
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _child(spec, "strategy")
    _fill_zero(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_child(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _replica_set(tree: Json) -> None:
    spec = _child(tree, "spec")
    _fill(spec, replicas=1)
    _template(spec)


_NO_LIMIT = 2**31 - 1


def _job(tree: Json) -> None:
    spec, meta = _child(tree, "spec"), tree["metadata"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    limit = 6 if spec.get("backoffLimitPerIndex") is None else _NO_LIMIT
    _fill(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", suspend=False)
    _fill(spec, manualSelector=False)
    _fill(spec, podReplacementPolicy="FailedOrTerminating" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    _template(spec)
    if spec.get("selector") is None and not spec.get("manualSelector") and meta.get("uid"):
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}}
        generated = {
            "batch.kubernetes.io/controller-uid": meta["uid"],
            "batch.kubernetes.io/job-name": meta["name"],
            "controller-uid": meta["uid"],
            "job-name": meta["name"],
        }
        for labels in (_child(meta, "labels"), _child(_child(spec["template"], "metadata"), "labels")):
            labels.update(generated)


def _service(tree: Json) -> None:
    spec = _child(tree, "spec")
    _fill_zero(spec, sessionAffinity="None", type="ClusterIP")
    for port in spec.get("ports") or ():
        _fill_zero(port, protocol="TCP", targetPort=port.get("port"))
    if spec["sessionAffinity"] == "ClientIP":
        _fill(_child(_child(spec, "sessionAffinityConfig"), "clientIP"), timeoutSeconds=10800)
    else:
        spec.pop("sessionAffinityConfig", None)
    if spec["type"] == "ExternalName":
        return
    _fill(spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)


def _claim(tree: Json) -> None:
    _fill(_child(tree, "spec"), volumeMode="Filesystem")


def _volume_object(tree: Json) -> None:
    spec = _child(tree, "spec")
    _fill(spec, volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")
    if spec.get("hostPath") is not None:
        _fill(spec["hostPath"], type="")


def _secret(tree: Json) -> None:
    _fill(tree, type="Opaque")
    if plain := tree.pop("stringData", None):
        data = _child(tree, "data")
        data |= {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}


def _namespace(tree: Json) -> None:
    _child(tree["metadata"], "labels")["kubernetes.io/metadata.name"] = tree["metadata"]["name"]
    _fill(_child(tree, "spec"), finalizers=["kubernetes"])


def _node(tree: Json) -> None:
    _child(tree, "spec")


def _storage_class(tree: Json) -> None:
    _fill(tree, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(tree: Json) -> None:
    _fill(tree, preemptionPolicy="PreemptLowerPriority")


def _binding(tree: Json) -> None:
    _fill(_child(tree, "roleRef"), apiGroup="rbac.authorization.k8s.io")
    for subject in tree.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def _custom_resource_definition(tree: Json) -> None:
    spec = _child(tree, "spec")
    names = _child(spec, "names")
    kind = names.get("kind") or ""
    _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    _fill(_child(spec, "conversion"), strategy="None")


_DEFAULTS: dict[str, Callable[[Json], None]] = {
    "pods": _pod,
    "services": _service,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume_object,
    "secrets": _secret,
    "namespaces": _namespace,
    "nodes": _node,
    "statefulsets.apps": _stateful_set,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "jobs.batch": _job,
    "storageclasses.storage.k8s.io": _storage_class,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "customresourcedefinitions.apiextensions.k8s.io": _custom_resource_definition,
}

_STATUS: dict[str, Callable[[], Json]] = {
    "services": lambda: {"loadBalancer": {}},
    "persistentvolumeclaims": lambda: {"phase": "Pending"},
    "namespaces": lambda: {"phase": "Active"},
    "statefulsets.apps": lambda: {"replicas": 0, "availableReplicas": 0},
    "deployments.apps": dict,
    "replicasets.apps": lambda: {"replicas": 0},
    "jobs.batch": dict,
    "ingresses.networking.k8s.io": lambda: {"loadBalancer": {}},
    "nodes": dict,
}
