"""The objects of `core.pingcap.com/v1alpha1` that describe a TidbCluster to TiDB Operator v2, pure.

v2 has a Cluster, and for each component a group with a template of its pods. What the template has no field for goes
into its overlay, which v2 merges into the pod. Data comes by replication or from a backup: v2's groups start empty.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from apis import toml
from apis.accessor import Component, find
from apis.component_specs import TiDBSpec, TiFlashSpec
from apis.config import drop, tables
from apis.config import find as values_at
from apis.shared import Config, TopologySpreadConstraint
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member import naming

_VERSION = re.compile(r"v?\d+\.\d+\.\d+")
API_VERSION = "core.pingcap.com/v1alpha1"


@dataclass(frozen=True, slots=True)
class Group:
    """A component of v2.

    `managed` are the settings that v2's operator sets itself and rejects in a configuration. `needs_data` is True if v2
    requires a volume named `data`.
    """

    name: str
    kind: str
    managed: Sequence[str]
    needs_data: bool = False


def _below(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names)


_CERTIFICATES = _below("security", "ca-path", "cert-path", "key-path")
GROUPS: Sequence[Group] = (
    Group(
        "pd",
        "PDGroup",
        (
            *("name", "data-dir", "client-urls", "peer-urls", "advertise-client-urls", "advertise-peer-urls"),
            *("initial-cluster", "initial-cluster-state", "initial-cluster-token", "join"),
            *_below("security", "cacert-path", "cert-path", "key-path"),
        ),
        needs_data=True,
    ),
    Group(
        "tikv",
        "TiKVGroup",
        (
            *_below("server", "addr", "advertise-addr", "status-addr", "advertise-status-addr"),
            *("storage.data-dir", "pd.endpoints"),
            *_CERTIFICATES,
        ),
        needs_data=True,
    ),
    Group(
        "tiflash",
        "TiFlashGroup",
        (
            *_below("security", "ca_path", "cert_path", "key_path"),
            *("tmp_path", "storage.main.dir", "storage.raft.dir", "flash.service_addr", "raft.pd_addr"),
            *_below("flash.proxy", "config", "data-dir", "addr", "advertise-addr", "advertise-status-addr"),
            *("logger.log", "logger.errorlog", "status.metrics_port"),
        ),
        needs_data=True,
    ),
    Group(
        "tidb",
        "TiDBGroup",
        (
            *("store", "advertise-address", "host", "path", "log.slow-query-file", "initialize-sql-file", "labels"),
            *_below("security", "ssl-ca", "ssl-cert", "ssl-key", "auth-token-jwks", "sem-config"),
            *_below("security", "cluster-ssl-ca", "cluster-ssl-cert", "cluster-ssl-key"),
            *("keyspace", "standby.standby-mode"),
        ),
    ),
    Group("ticdc", "TiCDCGroup", ("addr", "advertise-addr", *_CERTIFICATES)),
    Group(
        "tiproxy",
        "TiProxyGroup",
        (
            *("proxy.address", "proxy.advertise-address", "proxy.pd-address", "api.address"),
            *(
                f"security.{side}.{part}"
                for side in ("server-sql-tls", "server-http-tls", "cluster-tls", "sql-tls")
                for part in ("cert", "key", "ca")
            ),
        ),
    ),
)
"""The components that both have, in the order in which they start (v2.2.0-alpha.6)."""

_CLASSES = ("storageClassName", "volumeAttributesClassName")
_PROXY_MANAGED = (*_CERTIFICATES, "server.status-addr")


def manifests(tc: TidbCluster, name: str) -> list[Json]:
    """The Cluster and the groups of a TidbCluster, named `name`."""
    there = [(group, component) for group in GROUPS if (component := find(tc, group.name)) is not None]
    return [_cluster(tc, name), *(_group(tc, group, component, name) for group, component in there)]


def refused(tc: TidbCluster, name: str) -> Iterator[tuple[str, str]]:
    """Settings that the manifests leave out because v2's operator sets them, and versions that v2 rejects.

    Also the certificates, which do not hold for v2's Services yet. Each is a field or a setting, with a note.
    """
    if _has_tls(tc):
        names = f"*.{name}-pd-peer.{tc.metadata.namespace}"
        yield "spec.tlsCluster.enabled", f"the Secrets are v1's; their certificates must hold for names such as {names}"
    for group in GROUPS:
        component = find(tc, group.name)
        if component is None:
            continue
        if any(constraint.match_labels for constraint in _constraints(component)):
            yield f"{component.field}.topologySpreadConstraints", "the manifest selects the labels of v2"
        if not _VERSION.match(component.version):
            yield component.version_field, f"v2 takes a version such as v8.5.2, and not {component.version!r}"
        for field, config, managed in _configs(group, component):
            table = tables(config, component.type.config, field)
            yield from ((f"{field}: {path}", "v2's operator sets it") for path in managed if [*values_at(table, path)])


def _constraints(component: Component) -> Sequence[TopologySpreadConstraint]:
    return component.spec.topology_spread_constraints or component.cluster.topology_spread_constraints


def _has_tls(tc: TidbCluster) -> bool:
    return bool(tc.spec.tls_cluster and tc.spec.tls_cluster.enabled)


def _cluster(tc: TidbCluster, name: str) -> Json:
    spec: Json = {}
    if _has_tls(tc):
        client = {"name": naming.cluster_client_secret(tc)}
        spec |= {"tlsCluster": {"enabled": True}}
        spec |= {"security": {"tls": {"client": {"ca": client, "certKeyPair": client}}}}
    tidb = tc.spec.tidb
    if tidb and tidb.bootstrap_sql_config_map_name:
        spec["bootstrapSQL"] = {"name": tidb.bootstrap_sql_config_map_name}
    if tc.spec.suspend_action and tc.spec.suspend_action.suspend_stateful_set:
        spec["suspendAction"] = {"suspendCompute": True}
    if tc.spec.paused:
        spec["paused"] = True
    return _object("Cluster", tc, name, {}, spec)


def _group(tc: TidbCluster, group: Group, component: Component, name: str) -> Json:
    labels = {"pingcap.com/group": name, "pingcap.com/component": group.name, "pingcap.com/cluster": name}
    template = _template(tc, group, component, labels)
    spec = {"cluster": {"name": name}, "replicas": component.workload.replicas, "template": {"spec": template}}
    return _object(group.kind, tc, name, labels, spec)


def _object(kind: str, tc: TidbCluster, name: str, labels: Mapping[str, str], spec: Json) -> Json:
    metadata: Json = {"name": name, "namespace": tc.metadata.namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _template(tc: TidbCluster, group: Group, component: Component, labels: Mapping[str, str]) -> Json:
    template: Json = {"version": component.version}
    image = component.image.rpartition(":")[0] or component.image
    if image and image != component.type.default_image:
        template["image"] = image
    template |= _resources(component)
    config = {field.rpartition(".")[2]: text for field, text in _texts(group, component).items()}
    template |= {("proxyConfig" if key == "proxy" else "config"): text for key, text in config.items()}
    template["updateStrategy"] = {
        "config": "Restart" if component.config_update_strategy == "RollingUpdate" else "HotReload"
    }
    template |= _server(tc, group, component)
    volumes = _volumes(group, component)
    template |= {"volumes": volumes} if volumes else {}
    overlay = _overlay(group, component, labels)
    return template | ({"overlay": {"pod": overlay}} if overlay else {})


def _configs(group: Group, component: Component) -> Iterator[tuple[str, Config | None, Sequence[str]]]:
    """Each configuration of a component, with its path and the settings that v2 sets itself."""
    yield component.config_field, component.config, group.managed
    if isinstance(component.spec, TiFlashSpec) and component.spec.config:
        yield f"{component.field}.config.proxy", component.spec.config.proxy, _PROXY_MANAGED


def _texts(group: Group, component: Component) -> dict[str, str]:
    """The configurations as TOML, without the settings that v2 sets itself."""
    texts = {}
    for field, config, managed in _configs(group, component):
        table = tables(config, component.type.config, field)
        for path in managed:
            drop(table, path)
        if table:
            texts[field] = toml.dumps(table)
    return texts


def _resources(component: Component) -> Json:
    """CPU and memory, if v1 requests and limits them alike, as v2 does; otherwise the overlay has them."""
    return {"resources": dict(component.resources["requests"])} if _are_alike(component.resources) else {}


def _are_alike(resources: Json) -> bool:
    requests = resources.get("requests") or {}
    return resources.get("limits") == requests and requests.keys() <= {"cpu", "memory"} and "claims" not in resources


def _server(tc: TidbCluster, group: Group, component: Component) -> Json:
    """The certificates of v1, and the labels and ports of servers."""
    tree: Json = {}
    if component.workload.labels_of_servers:
        tree["server"] = {"labels": dict(component.workload.labels_of_servers)}
    tls: Json = {}
    if _has_tls(tc) and group.name != "tiproxy":
        secret = {"name": naming.cluster_secret(tc, group.name)}
        tls["cluster"] = {"ca": secret, "certKeyPair": secret}
    if isinstance(component.spec, TiDBSpec) and component.spec.tls_client and component.spec.tls_client.enabled:
        secret = {"name": naming.tidb_server_secret(tc)}
        tls["mysql"] = {"enabled": True, "ca": secret, "certKeyPair": secret}
    return tree | ({"security": {"tls": tls}} if tls else {})


def _volumes(group: Group, component: Component) -> list[Json]:
    if isinstance(component.spec, TiFlashSpec):
        return [
            _tiflash_volume(index, msgspec.to_builtins(claim))
            for index, claim in enumerate(component.spec.storage_claims)
        ]
    volumes = []
    spec = msgspec.to_builtins(component.workload)
    if group.needs_data:
        mount: Json = {"type": "data"} | ({"subPath": spec["dataSubDir"]} if spec.get("dataSubDir") else {})
        volumes.append(_volume("data", mount, str(component.storage_request or ""), spec))
    for volume in spec.get("storageVolumes") or ():
        mount = {"mountPath": volume["mountPath"]} if volume.get("mountPath") else {}
        classes = {key: spec.get(key) for key in _CLASSES} | volume
        volumes.append(_volume(volume["name"], mount, volume["storageSize"], classes))
    return volumes


def _tiflash_volume(index: int, claim: Json) -> Json:
    size = ((claim.get("resources") or {}).get("requests") or {}).get("storage", "")
    mount = {"type": "data"} if index == 0 else {"mountPath": f"/data{index}"}
    return _volume("data" if index == 0 else f"data{index}", mount, str(size), claim)


def _volume(name: str, mount: Json, size: str, spec: Mapping[str, object]) -> Json:
    classes = {key: spec[key] for key in _CLASSES if spec.get(key)}
    return {"name": name, "mounts": [mount] if mount else [], "storage": size, **classes}


def _overlay(group: Group, component: Component, labels: Mapping[str, str]) -> Json:
    """What v2's template has no field for, as parts of a pod."""
    spec = msgspec.to_builtins(component.spec)
    pod: Json = {
        "hostNetwork": component.host_network or None,
        "affinity": component.affinity,
        "nodeSelector": component.node_selector,
        "tolerations": component.tolerations,
        "topologySpreadConstraints": [
            constraint | {"labelSelector": {"matchLabels": dict(labels)}}
            for constraint in component.topology_spread_constraints
        ],
        "priorityClassName": component.priority_class_name,
        "schedulerName": component.scheduler_name,
        "securityContext": component.pod_security_context,
        "serviceAccountName": component.service_account,
        "automountServiceAccountToken": component.automount_service_account_token,
        "imagePullSecrets": component.image_pull_secrets,
        "dnsConfig": component.dns_config,
        "dnsPolicy": spec.get("dnsPolicy") or component.cluster.dns_policy,
        "terminationGracePeriodSeconds": component.termination_grace_period_seconds,
        "initContainers": spec.get("initContainers"),
        "volumes": spec.get("additionalVolumes"),
        "containers": [*_main_container(group, component, spec), *(spec.get("additionalContainers") or ())],
    }
    shown = {key: value for key, value in pod.items() if value is not None and value not in ("", [], {})}
    metadata = {
        key: value for key, value in (("labels", component.labels), ("annotations", component.annotations)) if value
    }
    return ({"metadata": metadata} if metadata else {}) | ({"spec": shown} if shown else {})


def _main_container(group: Group, component: Component, spec: Json) -> list[Json]:
    container: Json = {
        "env": spec.get("env"),
        "envFrom": spec.get("envFrom"),
        "volumeMounts": spec.get("additionalVolumeMounts"),
        "securityContext": component.security_context,
        "imagePullPolicy": component.image_pull_policy if component.image_pull_policy != "IfNotPresent" else None,
        "lifecycle": spec.get("lifecycle"),
        "resources": None if _are_alike(component.resources) else component.resources,
    }
    shown = {key: value for key, value in container.items() if value}
    return [{"name": group.name} | shown] if shown else []
