"""`prometheus.yml` as the ConfigMap has it, with one job for each kind of pod in each cluster (other-resources.md 3.5).

Each pod inserts its own name, namespace and shard.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import yaml

from apis import images
from apis.components import DM_CLUSTER, TIDB_CLUSTER, component_type, component_types
from apis.monitor_parts import BasicAuth, QueueConfig, RelabelConfig, RemoteWriteSpec, SecretOrConfigMap, TLSConfig
from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from kube.objects import Json
from member.monitor.naming import Inputs, Target, asset_path
from member.objects.pod import without_unset

_LABEL = "__meta_kubernetes_pod_label_app_kubernetes_io_"
_ANNOTATION = "__meta_kubernetes_pod_annotation_"
_SCRAPE = f"{_ANNOTATION}prometheus_io_scrape"
_PATH = f"{_ANNOTATION}prometheus_io_path"
_PORT = f"{_ANNOTATION}prometheus_io_port"
_NAMESPACE = "__meta_kubernetes_namespace"
_POD = "__meta_kubernetes_pod_name"
_INTERVAL = "15s"


@dataclass(frozen=True, slots=True)
class Job:
    """The scrape job for one kind of pod.

    `host` is the pattern of a pod's host name: $1 is the pod's name, $2 the label `second`, $3 the namespace.
    `verified` is True if Prometheus verifies the server's certificate. `always` is False for a job that only clusters
    with such pods get, so that other monitors stay as they are.
    """

    name: str
    component: str
    host: str
    second: str = f"{_LABEL}instance"
    port: str = _PORT
    verified: bool = True
    always: bool = True

    def is_for(self, target: Target) -> bool:
        """True if the configuration for a cluster has the job."""
        return self.always or self.component in target.beyond_v16


def jobs_of_table(kind: str) -> Iterator[Job]:
    """The jobs for the components of a kind of cluster."""
    for row in component_types(kind):
        if row.metrics_port:
            host = f"$1.$2-{row.name}{row.peer_suffix}.$3"
            yield Job(row.name, row.name, host, verified=row.name != "tiproxy", always=row.always_scraped)


def jobs_of_cluster() -> tuple[Job, ...]:
    """The jobs for all possible pods of a TidbCluster, including drainer and lightning, which users run.

    TiFlash's pods have a second job for the proxy.
    """
    tiflash, named = component_type("tiflash"), f"{_LABEL}name"
    proxy_port = f"{_ANNOTATION}tiflash_proxy_prometheus_io_port"
    return (
        *jobs_of_table(TIDB_CLUSTER),
        Job("tiflash-proxy", tiflash.name, f"$1.$2-{tiflash.name}{tiflash.peer_suffix}.$3", port=proxy_port),
        Job("drainer", "drainer", "$1.$2.$3", named),
        Job("lightning", "tidb-lightning", "$2.$3", named, verified=False),
    )


_MAJOR = re.compile(r"v?(\d+)\.\d+\.\d+")
"""The beginning of a semantic version; other texts say nothing about Prometheus."""
_STRICT = 3


def scrape_configs(inputs: Inputs, shards: int, operator_namespace: str = "", prometheus: str = "") -> list[Json]:
    """The section `scrape_configs`; includes the operator if its namespace is given.

    `prometheus` is its version. From 3 on it rejects TiFlash's answers, which have no valid content type (MON-2).
    """
    is_strict = (major := _MAJOR.match(prometheus)) is not None and int(major[1]) >= _STRICT
    fallback = {"fallback_scrape_protocol": "PrometheusText0.0.4"} if is_strict else {}
    found = [
        _entry(job, cluster, shards) | (fallback if job.component == "tiflash" else {})
        for job in jobs_of_cluster()
        for cluster in inputs.clusters
        if job.is_for(cluster)
    ]
    found += [_entry(job, cluster, shards) for job in jobs_of_table(DM_CLUSTER) for cluster in inputs.dm_clusters]
    return [*found, _operator(operator_namespace, shards)] if operator_namespace else found


def _entry(job: Job, target: Target, shards: int) -> Json:
    return {
        "job_name": f"{target.namespace}-{target.name}-{job.name}",
        "honor_labels": True,
        "scrape_interval": _INTERVAL,
        "scheme": "https" if target.secret else "http",
        "kubernetes_sd_configs": _discovery(target.namespace),
        "tls_config": _tls_config(job, target),
        "relabel_configs": [
            _keep(f"{_LABEL}instance", target.instance),
            _keep(_NAMESPACE, target.namespace),
            _keep(_SCRAPE, "true"),
            _keep(f"{_LABEL}component", job.component),
            _address(job, target),
            _copy(_NAMESPACE, "kubernetes_namespace"),
            _copy(f"{_LABEL}instance", "cluster"),
            _copy(_POD, "instance"),
            _copy(f"{_LABEL}component", "component"),
            {
                "source_labels": [_NAMESPACE, f"{_LABEL}instance"],
                "separator": "-",
                "target_label": "tidb_cluster",
            },
            _copy(_PATH, "__metrics_path__") | {"regex": "(.+)"},
            *_of_shard(shards),
        ],
    }


def _operator(namespace: str, shards: int) -> Json:
    """The job for the controller-manager's pods, leader and standbys. v1.6 does not have it."""
    return {
        "job_name": "tidb-operator",
        "honor_labels": True,
        "scrape_interval": _INTERVAL,
        "scheme": "http",
        "kubernetes_sd_configs": _discovery(namespace),
        "relabel_configs": [
            _keep(f"{_LABEL}name", "tidb-operator"),
            _keep(f"{_LABEL}component", "controller-manager"),
            _keep(_SCRAPE, "true"),
            {
                "action": "replace",
                "regex": "(.+);(.+)",
                "replacement": "$1:$2",
                "target_label": "__address__",
                "source_labels": ["__meta_kubernetes_pod_ip", _PORT],
            },
            _copy(_POD, "instance"),
            *_of_shard(shards),
        ],
    }


def _discovery(namespace: str) -> list[Json]:
    return [{"api_server": None, "role": "pod", "namespaces": {"names": [namespace]}}]


def _tls_config(job: Job, target: Target) -> Json:
    if not target.secret or not job.verified:
        return {"insecure_skip_verify": True}
    files = {"ca_file": "ca.crt", "cert_file": "tls.crt", "key_file": "tls.key"}
    return {field: asset_path(target.namespace, target.secret, key) for field, key in files.items()}


def _address(job: Job, target: Target) -> Json:
    """The address of a pod. Its Service has the cluster's name, which may differ from the instance label."""
    sources: Sequence[str] = [_POD, job.second, _NAMESPACE, job.port]
    host = job.host if target.instance == target.name else job.host.replace("$2-", f"{target.name}-")
    return {
        "action": "replace",
        "regex": "(.+);(.+);(.+);(.+)",
        "replacement": f"{host}:$4",
        "target_label": "__address__",
        "source_labels": list(sources),
    }


def _of_shard(shards: int) -> list[Json]:
    return [
        {"source_labels": ["__address__"], "action": "hashmod", "target_label": "__tmp_hash", "modulus": shards},
        {"source_labels": ["__tmp_hash"], "regex": "$(SHARD)", "action": "keep"},
    ]


def _keep(label: str, value: str) -> Json:
    return {"source_labels": [label], "action": "keep", "regex": value.replace(".", r"\.")}


def _copy(label: str, target: str) -> Json:
    return {"source_labels": [label], "action": "replace", "target_label": target}


REPLICA = "$(NAMESPACE)_$(POD_NAME)"
"""The label value that distinguishes replicas whose series are stored together."""
RULES = "/prometheus-rules"
EXTERNAL_RULES = "/prometheus-external-rules"
OPERATOR_RULES = "/prometheus-operator-rules"
_KEPT = 128
"""The number of cached texts, one per monitor."""
Reference = tuple[str, str, str]
"""`secret` or `configmap`, the object's name, and the key in it."""


def prometheus_yml(monitor: TidbMonitor, inputs: Inputs) -> str:
    """The text of the file: the user's replacement, or the generated configuration."""
    if inputs.given_config is not None:
        return inputs.given_config
    return _yaml(msgspec.json.encode(configuration(monitor, inputs)))


@lru_cache(_KEPT)
def _yaml(tree: bytes) -> str:
    """A tree in JSON as YAML, which takes a tenth of a second to write; few reconciles change anything of it."""
    text: str = yaml.safe_dump(msgspec.json.decode(tree), sort_keys=False, default_flow_style=False, width=1000)
    return text


def configuration(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The generated configuration."""
    spec = monitor.spec
    operator = monitor.metadata.annotations.get(OPERATOR_NAMESPACE, "")
    tree: Json = {
        "global": {
            "evaluation_interval": _INTERVAL,
            "scrape_interval": _INTERVAL,
            "external_labels": _external_labels(monitor),
        },
        "scrape_configs": scrape_configs(inputs, spec.shards or 1, operator, spec.prometheus.version),
    }
    if spec.prometheus.remote_write:
        tree["remote_write"] = remote_write(monitor, inputs)
    if spec.alertmanager_url:
        tree["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [spec.alertmanager_url]}]}]}
    if rules := _rule_files(monitor):
        tree["rule_files"] = rules
    return tree


def _external_labels(monitor: TidbMonitor) -> Json:
    name = monitor.spec.replica_external_label_name
    replica = {} if name == "" else {name or "prometheus_replica": REPLICA}
    return dict(sorted({**replica, **monitor.spec.external_labels}.items()))


def _rule_files(monitor: TidbMonitor) -> list[str]:
    spec = monitor.spec
    files = []
    if spec.prometheus.config is not None and spec.prometheus.config.rule_config_ref is not None:
        files.append(f"{EXTERNAL_RULES}/*.rules.yml")
    elif spec.alertmanager_url or spec.enable_alert_rules:
        files.append(f"{RULES}/rules/*.rules.yml")
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        files.append(f"{OPERATOR_RULES}/*.rules.yml")
    return files


SECRET, CONFIG_MAP = "secret", "configmap"


def references(monitor: TidbMonitor) -> Iterator[Reference]:
    """The keys of Secrets and ConfigMaps that become files for Prometheus."""
    for each in monitor.spec.prometheus.remote_write:
        if each.basic_auth is not None:
            yield SECRET, each.basic_auth.password["name"], each.basic_auth.password["key"]
        if each.tls_config is not None:
            yield from _files_of(each.tls_config).values()


def users(monitor: TidbMonitor) -> Iterator[tuple[str, str]]:
    """The Secrets and keys with the names of users."""
    for each in monitor.spec.prometheus.remote_write:
        if each.basic_auth is not None:
            yield each.basic_auth.username["name"], each.basic_auth.username["key"]


def remote_write(monitor: TidbMonitor, inputs: Inputs) -> list[Json]:
    """The section `remote_write`, without settings that the version of Prometheus does not support (3.7).

    Passwords and certificates are files of the Secret that Prometheus mounts anyway; v1.6 writes passwords into a
    ConfigMap, and ignores `tlsConfig`.
    """
    namespace, version = monitor.metadata.namespace, monitor.spec.prometheus.version

    def path(reference: Reference) -> str:
        kind, name, key = reference
        return asset_path(namespace, name, key, kind)

    return [
        _endpoint(each, inputs, lambda since: images.at_least(version, since), path)
        for each in monitor.spec.prometheus.remote_write
    ]


def _endpoint(
    each: RemoteWriteSpec, inputs: Inputs, knows: Callable[[str], bool], path: Callable[[Reference], str]
) -> Json:
    metadata = each.metadata_config
    entry: Json = {"url": each.url, "remote_timeout": each.remote_timeout or "30s"}
    if knows("2.25.0"):
        entry |= {"headers": dict(sorted(each.headers.items())), "name": each.name}
    entry |= {
        "write_relabel_configs": [_relabel(rule) for rule in each.write_relabel_configs],
        "basic_auth": each.basic_auth and _basic_auth(each.basic_auth, inputs, path),
        "bearer_token": each.bearer_token,
        "bearer_token_file": each.bearer_token_file,
        "tls_config": each.tls_config and _tls(each.tls_config, path),
        "proxy_url": each.proxy_url,
        "queue_config": each.queue_config and _queue(each.queue_config, is_new=knows("2.6.0")),
    }
    if metadata is not None and knows("2.23.0"):
        entry["metadata_config"] = {"send": metadata.send} | without_unset({"send_interval": metadata.send_interval})
    return without_unset(entry)


def _relabel(rule: RelabelConfig) -> Json:
    return without_unset(
        {
            "source_labels": rule.source_labels,
            "separator": rule.separator,
            "target_label": rule.target_label,
            "regex": rule.regex,
            "modulus": rule.modulus or None,
            "replacement": rule.replacement,
            "action": rule.action,
        }
    )


def _basic_auth(auth: BasicAuth, inputs: Inputs, path: Callable[[Reference], str]) -> Json:
    user, password = auth.username, auth.password
    return {
        "username": inputs.users.get((user["name"], user["key"]), ""),
        "password_file": path((SECRET, password["name"], password["key"])),
    }


def _tls(tls: TLSConfig, path: Callable[[Reference], str]) -> Json:
    given = {"ca_file": tls.ca_file, "cert_file": tls.cert_file, "key_file": tls.key_file}
    referenced = {field: path(reference) for field, reference in _files_of(tls).items()}
    more = {"server_name": tls.server_name, "insecure_skip_verify": tls.insecure_skip_verify or None}
    return without_unset({**given, **referenced, **more})


def _files_of(tls: TLSConfig) -> Mapping[str, Reference]:
    key = SecretOrConfigMap(secret=tls.key_secret)
    chosen = {"ca_file": _chosen(tls.ca), "cert_file": _chosen(tls.cert), "key_file": _chosen(key)}
    return {field: reference for field, reference in chosen.items() if reference is not None}


def _chosen(source: SecretOrConfigMap) -> Reference | None:
    kind, selector = (SECRET, source.secret) if source.secret else (CONFIG_MAP, source.config_map)
    return (kind, selector["name"], selector["key"]) if selector else None


def _queue(queue: QueueConfig, *, is_new: bool) -> Json:
    return without_unset(
        {
            "capacity": queue.capacity or None,
            "min_shards": (queue.min_shards or None) if is_new else None,
            "max_shards": queue.max_shards or None,
            "max_samples_per_send": queue.max_samples_per_send or None,
            "batch_send_deadline": _duration(queue.batch_send_deadline),
            "max_retries": queue.max_retries or None,
            "min_backoff": _duration(queue.min_backoff),
            "max_backoff": _duration(queue.max_backoff),
        }
    )


def _duration(nanoseconds: int | None) -> str:
    """The duration in milliseconds, Prometheus' finest unit; empty for None."""
    if nanoseconds is None:
        return ""
    return f"{-(-nanoseconds // 1_000_000)}ms"
