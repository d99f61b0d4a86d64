"""Pods: the parts that all components share (objects.md 3).

A component provides containers and volumes; the rest of the pod comes from the fields that both cluster and component
have. The result contains only what the operator decides, without defaults of the API server.

`additionalContainers` merge into generated containers by the rules of Kubernetes' strategic merge (3.5): maps merge, a
few lists merge by key, everything else is replaced. The order of a merged list decides whether pods roll after a
takeover from v1.6, so it is part of the contract.
"""

from collections.abc import Mapping, Sequence

from apis.accessor import Component, container_resources, helper_image, helper_image_pull_policy
from apis.component_specs import TiDBSlowLogTailerSpec
from apis.shared import LogTailerSpec, Probe
from kube.objects import Json
from member import labels
from member.startscript.fragments import quoted

_MERGE_KEYS = {
    "ports": "containerPort",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}

_ZERO_MATTERS_BELOW = frozenset({"securityContext"})
_ZERO_MATTERS = frozenset({"optional", "terminationGracePeriodSeconds"})
"""Fields in which an explicit zero differs from an absent value."""


def with_additional_containers(generated: Sequence[Json], additional: Sequence[Json]) -> list[Json]:
    """The generated containers, changed by entries with their names, followed by the other entries in order."""
    patches = {patch["name"]: patch for patch in additional}
    names = {container["name"] for container in generated}
    merged = [merge(container, patches.get(container["name"], {})) for container in generated]
    return merged + [entry for entry in additional if entry["name"] not in names]


def merge(container: Json, patch: Json) -> Json:
    """`container` with the changes of `patch`, as a new tree. Fields that the patch does not set stay."""
    merged = dict(container)
    for key, value in _without_unset(patch).items():
        if key in _MERGE_KEYS:
            merged[key] = _merge_list(container.get(key) or [], value, _MERGE_KEYS[key])
        else:
            merged[key] = _merge_value(container.get(key), value)
    return merged


def _merge_value(old: object, new: object) -> object:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _merge_value(old.get(key), value) for key, value in new.items()}}


def _merge_list(existing: list[Json], patch: list[Json], key: str) -> list[Json]:
    """The patched items in the patch's order; existing items not named in the patch keep their place before them."""
    position = {item.get(key): index for index, item in enumerate(existing)}
    named: dict[object, Json] = {}
    for item in patch:
        identity = item.get(key)
        base = named.get(identity) or (existing[position[identity]] if identity in position else {})
        merged = _merge_value(base, item)
        assert isinstance(merged, dict)
        named[identity] = merged

    unnamed = [item for item in existing if item.get(key) not in named]
    result: list[Json] = []
    for identity, item in named.items():
        while unnamed and identity in position and position[unnamed[0].get(key)] < position[identity]:
            result.append(unnamed.pop(0))
        result.append(item)
    return result + unnamed


def _without_unset(tree: Json, *, keep_zero: bool = False) -> Json:
    """The tree without unset values: null, empty, and zero if that equals absent."""
    kept: Json = {}
    for key, value in tree.items():
        zero_matters = keep_zero or key in _ZERO_MATTERS
        stated = _stated(value, keep_zero=keep_zero or key in _ZERO_MATTERS_BELOW)
        if stated not in (None, {}, []) and (stated or zero_matters):
            kept[key] = stated
    return kept


def _stated(value: object, *, keep_zero: bool) -> object:
    if isinstance(value, dict):
        return _without_unset(value, keep_zero=keep_zero)
    if isinstance(value, list):
        return [_stated(item, keep_zero=keep_zero) for item in value]
    return value


_INITIAL_DELAY = 10
"""Seconds before the first readiness probe, unless the spec sets them."""


def env(name: str, value: str) -> Json:
    """A variable, without `value` if that is empty, as the API server stores it."""
    return {"name": name, "value": value} if value else {"name": name}


def env_from_field(name: str, path: str) -> Json:
    """A variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


NAMESPACE = env_from_field("NAMESPACE", "metadata.namespace")
POD_NAME = env_from_field("POD_NAME", "metadata.name")


def container_port(name: str, number: int) -> Json:
    """A TCP port of a container."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def main_container(
    component: Component,
    *,
    command: Sequence[str],
    ports: Sequence[Json],
    mounts: Sequence[Json],
    builtin_env: Sequence[Json],
    hooks: Json | None = None,
) -> Json:
    """The container named after the component, with all settings from the spec; `hooks` is its `lifecycle`."""
    return without_unset(
        {
            "name": component.name,
            "image": component.image,
            "imagePullPolicy": component.image_pull_policy,
            "command": list(command),
            "ports": list(ports),
            "env": component.env(builtin_env),
            "envFrom": component.env_from,
            "resources": component.resources,
            "volumeMounts": list(mounts),
            "securityContext": component.security_context,
            "lifecycle": hooks,
        }
    )


def log_tailer(
    component: Component, name: str, file: str, mount: Json, tailer: LogTailerSpec | TiDBSlowLogTailerSpec | None
) -> Json:
    """A sidecar that prints a log file as it grows (objects.md 4.3, 4.4); a native one ends after the server (TAIL-1).

    Process 1 of a container must handle SIGTERM itself, and the last lines take a while to be printed.
    """
    command = f"touch {quoted(file)}; tail -n0 -F {quoted(file)};"
    container: Json = {
        "name": name,
        "image": helper_image(component.tc),
        "imagePullPolicy": helper_image_pull_policy(component.tc),
        "volumeMounts": [mount],
    }
    if tailer is not None and tailer.use_sidecar:
        rest = f"sleep {tailer.sleep_time_seconds}; " if tailer.sleep_time_seconds else ""
        command = f'trap "{rest}exit 0" TERM; touch {quoted(file)}; tail -n0 -F {quoted(file)} & wait $!'
        container["restartPolicy"] = "Always"
    container["command"] = ["sh", "-c", command]
    if tailer is not None:
        container["resources"] = container_resources(tailer.requests, tailer.limits, tailer.claims)
        container["securityContext"] = tailer.security_context
    return without_unset(container)


def pod_template(
    component: Component,
    *,
    containers: Sequence[Json],
    volumes: Sequence[Json],
    init_containers: Sequence[Json] = (),
    metrics_port: int,
    metrics_path: str = "/metrics",
    sysctl_container: str = "init",
) -> Json:
    """The template of a component's pods.

    `containers` are the generated ones; the user's are merged in or appended. Those that restart by themselves are
    native sidecars: init containers. If the user wants it, a privileged init container named `sysctl_container` sets
    sysctls.
    """
    security_context, sysctl = _sysctl_init(component, sysctl_container)
    native = [container for container in containers if "restartPolicy" in container]
    plain = [container for container in containers if container not in native]
    names, additional = {each["name"] for each in native}, component.spec.additional_containers
    sidecars = with_additional_containers(native, [each for each in additional if each["name"] in names])
    spec = pod_spec(component) | without_unset(
        {
            "initContainers": [*sysctl, *init_containers, *component.spec.init_containers, *sidecars],
            "containers": with_additional_containers(plain, [each for each in additional if each["name"] not in names]),
            "volumes": [*volumes, *component.spec.additional_volumes],
            "serviceAccountName": component.service_account,
        }
    )
    if security_context is not None:
        spec["securityContext"] = security_context
    return {
        "metadata": {
            "labels": component.labels | labels.base_labels(component.tc, component.name),
            "annotations": _scrape_hints(metrics_port, metrics_path) | component.annotations,
        },
        "spec": spec,
    }


def pod_spec(component: Component) -> Json:
    """The part of a pod that both levels of the spec can set, without containers and volumes (objects.md 3.3)."""
    return without_unset(
        {
            "schedulerName": component.scheduler_name,
            "affinity": component.affinity,
            "nodeSelector": component.node_selector,
            "hostNetwork": component.host_network or None,
            "restartPolicy": "Always",
            "tolerations": component.tolerations,
            "securityContext": component.pod_security_context,
            "topologySpreadConstraints": component.topology_spread_constraints,
            "dnsPolicy": component.dns_policy,
            "dnsConfig": component.dns_config,
            "automountServiceAccountToken": component.automount_service_account_token,
            "priorityClassName": component.priority_class_name,
            "imagePullSecrets": component.image_pull_secrets,
            "terminationGracePeriodSeconds": component.termination_grace_period_seconds,
        }
    )


def with_other_fields(stateful_set: Json, fields: Mapping[str, object]) -> Json:
    """A StatefulSet with other fields of the pod spec; fields without a value are removed."""
    template = stateful_set["spec"]["template"]
    pod = without_unset({**template["spec"], **fields})
    return stateful_set | {"spec": stateful_set["spec"] | {"template": template | {"spec": pod}}}


def without_mounts(containers: Sequence[Json], name: str, mounts: Sequence[Json]) -> list[Json]:
    """Containers, one of which loses some mounts."""

    def without(container: Json) -> Json:
        return container | {"volumeMounts": [each for each in container["volumeMounts"] if each not in mounts]}

    return [without(each) if each["name"] == name else each for each in containers]


def without_unset(fields: Mapping[str, object]) -> Json:
    """The fields with a value: no null, empty text, list or map. False and 0 are values."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [], {})}


def _scrape_hints(port: int, path: str) -> dict[str, str]:
    return {
        labels.PROMETHEUS_SCRAPE: "true",
        labels.PROMETHEUS_PATH: path,
        labels.PROMETHEUS_PORT: str(port),
    }


def _sysctl_init(component: Component, name: str) -> tuple[Json | None, list[Json]]:
    """The pod's security context, and the init container that sets its sysctls instead (objects.md 3.6)."""
    context = component.pod_security_context
    sysctls = (context or {}).get("sysctls")
    if component.annotations.get(labels.SYSCTL_INIT) != "true" or not context or not sysctls:
        return context, []
    settings = " ".join(quoted(f"{sysctl['name']}={sysctl.get('value', '')}") for sysctl in sysctls)
    init = {
        "name": name,
        "image": helper_image(component.tc),
        "command": ["sh", "-c", f"sysctl -w {settings}"],
        "securityContext": {"privileged": True},
        "resources": component.resources,
    }
    return {key: value for key, value in context.items() if key != "sysctls"}, [without_unset(init)]


def readiness_probe(handler: Json, probe: Probe | None) -> Json:
    """A readiness probe with the given handler; with `probe` None, the defaults apply."""
    delay = probe.initial_delay_seconds if probe else None
    return handler | _timing(_INITIAL_DELAY if delay is None else delay, probe)


def probe_as_given(handler: Json, probe: Probe) -> Json:
    """A probe with the given handler and only the times that are in the spec."""
    return handler | _timing(probe.initial_delay_seconds, probe)


def tcp_handler(port: int) -> Json:
    """A handler that succeeds if the port accepts a connection."""
    return {"tcpSocket": {"port": port}}


def command_handler(*words: str) -> Json:
    """A handler that succeeds if the command in the container succeeds."""
    return {"exec": {"command": list(words)}}


def _timing(delay: int | None, probe: Probe | None) -> Json:
    times = {"initialDelaySeconds": delay, "periodSeconds": probe.period_seconds if probe else None}
    return {name: seconds for name, seconds in times.items() if seconds}
