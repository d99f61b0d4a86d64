"""The columns and cells of the built-in kinds in `kubectl get`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.objects import Json
from sandbox.apiserver.ages import age

_NONE, _UNSET, _UNKNOWN = "<none>", "<unset>", "<unknown>"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a kind after the name, as (name, type, priority), and their cells.

    `cells` returns the whole row, including the name; `name_last` puts the name's column at the end (events).
    """

    columns: tuple[tuple[str, str, int], ...]
    cells: Callable[[Json, datetime], list[Any]]
    name_last: bool = False


def printer_of(resource: str) -> Printer:
    """The printer of a built-in resource (`plural.group`); others show name and age."""
    return _PRINTERS.get(resource, _PLAIN)


def _wide(*names: str) -> tuple[tuple[str, str, int], ...]:
    return tuple((name, "string", 1) for name in names)


def _narrow(*names: str) -> tuple[tuple[str, str, int], ...]:
    return tuple((name, "string", 0) for name in names)


def _name(tree: Json) -> str:
    return str(tree["metadata"]["name"])


def _age(tree: Json, now: datetime) -> str:
    return age(tree["metadata"].get("creationTimestamp"), now)


def _spec(tree: Json) -> Json:
    spec: Json = tree.get("spec") or {}
    return spec


def _status(tree: Json) -> Json:
    status: Json = tree.get("status") or {}
    return status


def _plain(tree: Json, now: datetime) -> list[Any]:
    return [_name(tree), _age(tree, now)]


def _created_at(tree: Json, _: datetime) -> list[Any]:
    return [_name(tree), tree["metadata"].get("creationTimestamp")]


def _pod(tree: Json, now: datetime) -> list[Any]:
    spec, status = _spec(tree), _status(tree)
    statuses = status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in statuses)
    addresses = [address["ip"] for address in status.get("podIPs") or ()] or [status.get("podIP")]
    gates = spec.get("readinessGates") or ()
    true = {condition["type"] for condition in status.get("conditions") or () if condition["status"] == "True"}
    passed = sum(gate["conditionType"] in true for gate in gates)
    return [
        _name(tree),
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_reason(tree),
        _restarts(statuses, now),
        _age(tree, now),
        addresses[0] or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        f"{passed}/{len(gates)}" if gates else _NONE,
    ]


def _pod_reason(tree: Json) -> str:
    status = _status(tree)
    reason = status.get("reason") or status.get("phase") or "Unknown"
    initializing = _init_reason(tree)
    if initializing:
        reason = initializing
    else:
        for one in reversed(status.get("containerStatuses") or []):
            reason = _container_reason(one) or reason
        if reason == "Completed" and any(
            one.get("ready") and "running" in (one.get("state") or {}) for one in status.get("containerStatuses") or ()
        ):
            reason = "Running" if _is_ready(status) else "NotReady"
    if "deletionTimestamp" in tree["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _init_reason(tree: Json) -> str:
    """Why the init containers are not finished; empty if they are."""
    total = len(_spec(tree).get("initContainers") or ())
    for index, one in enumerate(_status(tree).get("initContainerStatuses") or ()):
        state = one.get("state") or {}
        terminated = state.get("terminated")
        if terminated and not terminated.get("exitCode"):
            continue
        why = _container_reason(one)
        return f"Init:{why}" if why and why != "PodInitializing" else f"Init:{index}/{total}"
    return ""


def _container_reason(one: Json) -> str:
    state = one.get("state") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated")
    if waiting.get("reason"):
        return str(waiting["reason"])
    if terminated is None:
        return ""
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_ready(status: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


def _restarts(statuses: Iterable[Json], now: datetime) -> str:
    count, last = 0, ""
    for one in statuses:
        count += one.get("restartCount", 0)
        finished = ((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        last = max(last, finished)
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)


def _service(tree: Json, now: datetime) -> list[Any]:
    spec = _spec(tree)
    return [
        _name(tree),
        spec.get("type", ""),
        spec.get("clusterIP") or _NONE,
        _external_address(spec, _status(tree)),
        ",".join(_service_port(port) for port in spec.get("ports") or ()) or _NONE,
        _age(tree, now),
        _pairs(spec.get("selector")),
    ]


def _external_address(spec: Json, status: Json) -> str:
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", _NONE))
    given = list(spec.get("externalIPs") or ())
    if spec.get("type") != "LoadBalancer":
        return ",".join(given) or _NONE
    ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
    given = [*(one.get("ip") or one.get("hostname") for one in ingress), *given]
    return ",".join(given) or "<pending>"


def _service_port(port: Json) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{outside}/{port.get('protocol', 'TCP')}"


def _pairs(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or _NONE


def _template_cells(tree: Json) -> list[Any]:
    containers = ((_spec(tree).get("template") or {}).get("spec") or {}).get("containers") or ()
    return [",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)]


def _selector(tree: Json) -> str:
    return _pairs((_spec(tree).get("selector") or {}).get("matchLabels"))


def _stateful_set(tree: Json, now: datetime) -> list[Any]:
    ready = f"{_status(tree).get('readyReplicas', 0)}/{_spec(tree).get('replicas', 0)}"
    return [_name(tree), ready, _age(tree, now), *_template_cells(tree)]


def _deployment(tree: Json, now: datetime) -> list[Any]:
    status = _status(tree)
    return [
        _name(tree),
        f"{status.get('readyReplicas', 0)}/{_spec(tree).get('replicas', 0)}",
        str(status.get("updatedReplicas", 0)),
        str(status.get("availableReplicas", 0)),
        _age(tree, now),
        *_template_cells(tree),
        _selector(tree),
    ]


def _replica_set(tree: Json, now: datetime) -> list[Any]:
    status = _status(tree)
    counts = [_spec(tree).get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(tree), *counts, _age(tree, now), *_template_cells(tree), _selector(tree)]


def _job(tree: Json, now: datetime) -> list[Any]:
    spec, status = _spec(tree), _status(tree)
    true = [one["type"] for one in status.get("conditions") or () if one["status"] == "True"]
    state = next((word for word in ("Complete", "Failed", "Suspended") if word in true), "Running")
    state = "Terminating" if "deletionTimestamp" in tree["metadata"] else state
    return [
        _name(tree),
        state,
        f"{status.get('succeeded', 0)}/{spec.get('completions') or spec.get('parallelism') or 1}",
        _duration(status, now),
        _age(tree, now),
        *_template_cells(tree),
        _selector(tree),
    ]


def _duration(status: Json, now: datetime) -> str:
    if not status.get("startTime"):
        return ""
    if not status.get("completionTime"):
        return age(status["startTime"], now)
    return age(status["startTime"], datetime.fromisoformat(status["completionTime"]))


def _phase(tree: Json) -> str:
    return "Terminating" if "deletionTimestamp" in tree["metadata"] else str(_status(tree).get("phase", ""))


def _modes(modes: Iterable[str] | None) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())


def _claim(tree: Json, now: datetime) -> list[Any]:
    spec, status = _spec(tree), _status(tree)
    bound = bool(spec.get("volumeName"))
    return [
        _name(tree),
        _phase(tree),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        _age(tree, now),
        spec.get("volumeMode") or _UNSET,
    ]


def _volume(tree: Json, now: datetime) -> list[Any]:
    spec, status = _spec(tree), _status(tree)
    claim = spec.get("claimRef")
    return [
        _name(tree),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(tree),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason", ""),
        _age(tree, now),
        spec.get("volumeMode") or _UNSET,
    ]


def _node(tree: Json, now: datetime) -> list[Any]:
    status = _status(tree)
    info = status.get("nodeInfo") or {}
    addresses = {one["type"]: one["address"] for one in status.get("addresses") or ()}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    state = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    prefix = "node-role.kubernetes.io/"
    labels = tree["metadata"].get("labels") or {}
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    return [
        _name(tree),
        f"{state},SchedulingDisabled" if _spec(tree).get("unschedulable") else state,
        ",".join(roles) or _NONE,
        _age(tree, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _config_map(tree: Json, now: datetime) -> list[Any]:
    return [_name(tree), len(tree.get("data") or {}) + len(tree.get("binaryData") or {}), _age(tree, now)]


def _secret(tree: Json, now: datetime) -> list[Any]:
    return [_name(tree), tree.get("type", ""), len(tree.get("data") or {}), _age(tree, now)]


def _event(tree: Json, now: datetime) -> list[Any]:
    about, source = tree.get("involvedObject") or {}, tree.get("source") or {}
    series = tree.get("series") or {}
    first = tree.get("firstTimestamp") or tree.get("eventTime")
    last = series.get("lastObservedTime") or tree.get("lastTimestamp") or first
    component = source.get("component") or tree.get("reportingComponent") or ""
    return [
        age(last, now),
        tree.get("type", ""),
        tree.get("reason", ""),
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(filter(None, (component, source.get("host") or tree.get("reportingInstance") or ""))),
        str(tree.get("message", "")).strip(),
        age(first, now),
        str(series.get("count") or tree.get("count") or 1),
        _name(tree),
    ]


def _namespace(tree: Json, now: datetime) -> list[Any]:
    return [_name(tree), _status(tree).get("phase", ""), _age(tree, now)]


def _lease(tree: Json, now: datetime) -> list[Any]:
    return [_name(tree), _spec(tree).get("holderIdentity") or "", _age(tree, now)]


def _ingress(tree: Json, now: datetime) -> list[Any]:
    spec, balancer = _spec(tree), _status(tree).get("loadBalancer") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    shown = ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")
    addresses = (each.get("ip") or each.get("hostname") or "" for each in balancer.get("ingress") or ())
    ports = "80, 443" if spec.get("tls") else "80"
    return [
        _name(tree),
        spec.get("ingressClassName") or "<none>",
        shown or "*",
        ",".join(addresses),
        ports,
        _age(tree, now),
    ]


def _priority_class(tree: Json, now: datetime) -> list[Any]:
    default = str(bool(tree.get("globalDefault"))).lower()
    return [_name(tree), tree.get("value", 0), default, _age(tree, now), tree.get("preemptionPolicy", "")]


def _storage_class(tree: Json, now: datetime) -> list[Any]:
    annotations = tree["metadata"].get("annotations") or {}
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        f"{_name(tree)} (default)" if default else _name(tree),
        tree.get("provisioner", ""),
        tree.get("reclaimPolicy", ""),
        tree.get("volumeBindingMode", ""),
        bool(tree.get("allowVolumeExpansion")),
        _age(tree, now),
    ]


def _volume_attributes_class(tree: Json, now: datetime) -> list[Any]:
    return [_name(tree), tree.get("driverName", ""), _age(tree, now)]


def _endpoints(tree: Json, now: datetime) -> list[Any]:
    pairs = [
        f"{address['ip']}:{port['port']}"
        for subset in tree.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(pairs) - 3} more..." if len(pairs) > 3 else ""
    return [_name(tree), (",".join(pairs[:3]) + more) or _NONE, _age(tree, now)]


def _endpoint_slice(tree: Json, now: datetime) -> list[Any]:
    ports = [str(port.get("port", "*")) for port in tree.get("ports") or ()]
    addresses = [address for endpoint in tree.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    more = f" + {len(addresses) - 3} more..." if len(addresses) > 3 else ""
    return [
        _name(tree),
        tree.get("addressType", ""),
        ",".join(ports) or _UNSET,
        (",".join(addresses[:3]) + more) or _UNSET,
        _age(tree, now),
    ]


def _budget(tree: Json, now: datetime) -> list[Any]:
    spec = _spec(tree)
    available, unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        _name(tree),
        "N/A" if available is None else str(available),
        "N/A" if unavailable is None else str(unavailable),
        _status(tree).get("disruptionsAllowed", 0),
        _age(tree, now),
    ]


def _quota(tree: Json, now: datetime) -> list[Any]:
    status, hard = _status(tree), _spec(tree).get("hard") or {}
    used = status.get("used") or {}
    told = {each: f"{each}: {used.get(each, 0)}/{hard[each]}" for each in sorted(hard)}
    requests = [text for each, text in told.items() if not each.startswith("limits.")]
    limits = [text for each, text in told.items() if each.startswith("limits.")]
    return [_name(tree), ", ".join(requests), ", ".join(limits), _age(tree, now)]


def _revision(tree: Json, now: datetime) -> list[Any]:
    owners = tree["metadata"].get("ownerReferences") or ()
    controller = next((owner for owner in owners if owner.get("controller")), None)
    return [_name(tree), _kind_and_name(controller), str(tree.get("revision", 0)), _age(tree, now)]


def _kind_and_name(owner: Json | None) -> str:
    if owner is None:
        return _NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"


def _role_binding(tree: Json, now: datetime) -> list[Any]:
    role = tree.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in tree.get("subjects") or ():
        name = subject["name"]
        full = f"{subject.get('namespace', '')}/{name}" if subject["kind"] == "ServiceAccount" else name
        subjects.setdefault(subject["kind"], []).append(full)
    lists = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [_name(tree), f"{role.get('kind')}/{role.get('name')}", _age(tree, now), *lists]


_PLAIN = Printer(_narrow("Age"), _plain)
_CREATED = Printer((("Created At", "date", 0),), _created_at)
_BINDING = Printer((*_narrow("Role", "Age"), *_wide("Users", "Groups", "ServiceAccounts")), _role_binding)

_PRINTERS = {
    "pods": Printer(
        (*_narrow("Ready", "Status", "Restarts", "Age"), *_wide("IP", "Node", "Nominated Node", "Readiness Gates")),
        _pod,
    ),
    "services": Printer(
        (*_narrow("Type", "Cluster-IP", "External-IP", "Port(s)", "Age"), *_wide("Selector")), _service
    ),
    "statefulsets.apps": Printer((*_narrow("Ready", "Age"), *_wide("Containers", "Images")), _stateful_set),
    "deployments.apps": Printer(
        (*_narrow("Ready", "Up-to-date", "Available", "Age"), *_wide("Containers", "Images", "Selector")), _deployment
    ),
    "replicasets.apps": Printer(
        (
            *((name, "integer", 0) for name in ("Desired", "Current", "Ready")),
            *_narrow("Age"),
            *_wide("Containers", "Images", "Selector"),
        ),
        _replica_set,
    ),
    "jobs.batch": Printer(
        (*_narrow("Status", "Completions", "Duration", "Age"), *_wide("Containers", "Images", "Selector")), _job
    ),
    "ingresses.networking.k8s.io": Printer(_narrow("Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    "priorityclasses.scheduling.k8s.io": Printer(
        (("Value", "integer", 0), *_narrow("Global-Default", "Age", "PreemptionPolicy")), _priority_class
    ),
    "persistentvolumeclaims": Printer(
        (
            *_narrow("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
            *_wide("VolumeMode"),
        ),
        _claim,
    ),
    "persistentvolumes": Printer(
        (
            *_narrow(
                "Capacity",
                "Access Modes",
                "Reclaim Policy",
                "Status",
                "Claim",
                "StorageClass",
                "VolumeAttributesClass",
                "Reason",
                "Age",
            ),
            *_wide("VolumeMode"),
        ),
        _volume,
    ),
    "nodes": Printer(
        (
            *_narrow("Status", "Roles", "Age", "Version"),
            *_wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        _node,
    ),
    "configmaps": Printer(_narrow("Data", "Age"), _config_map),
    "secrets": Printer(_narrow("Type", "Data", "Age"), _secret),
    "events": Printer(
        (
            *_narrow("Last Seen", "Type", "Reason", "Object"),
            *_wide("Subobject", "Source"),
            *_narrow("Message"),
            *_wide("First Seen", "Count"),
        ),
        _event,
        name_last=True,
    ),
    "namespaces": Printer(_narrow("Status", "Age"), _namespace),
    "leases.coordination.k8s.io": Printer(_narrow("Holder", "Age"), _lease),
    "storageclasses.storage.k8s.io": Printer(
        _narrow("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"), _storage_class
    ),
    "volumeattributesclasses.storage.k8s.io": Printer(_narrow("DriverName", "Age"), _volume_attributes_class),
    "endpoints": Printer(_narrow("Endpoints", "Age"), _endpoints),
    "endpointslices.discovery.k8s.io": Printer(_narrow("AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice),
    "poddisruptionbudgets.policy": Printer(
        (*_narrow("Min Available", "Max Unavailable"), ("Allowed Disruptions", "integer", 0), *_narrow("Age")), _budget
    ),
    "resourcequotas": Printer(_narrow("Request", "Limit", "Age"), _quota),
    "controllerrevisions.apps": Printer(_narrow("Controller", "Revision", "Age"), _revision),
    "roles.rbac.authorization.k8s.io": _CREATED,
    "clusterroles.rbac.authorization.k8s.io": _CREATED,
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
}
