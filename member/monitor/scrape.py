"""The jobs of Prometheus: one for each kind of pod in each cluster (other-resources.md 3.5)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apis.components import DM_CLUSTER, TIDB_CLUSTER, component_type, component_types
from kube.objects import Json
from member.monitor.inputs import Inputs, Target, asset_path

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
    `verified` is True if Prometheus verifies the server's certificate.
    """

    name: str
    component: str
    host: str
    second: str = f"{_LABEL}instance"
    port: str = _PORT
    verified: bool = True


def jobs_of_table(kind: str) -> Iterator[Job]:
    """The jobs for the components of a kind of cluster."""
    for row in component_types(kind):
        if row.metrics_port:
            host = f"$1.$2-{row.name}{row.peer_suffix}.$3"
            yield Job(row.name, row.name, host, verified=row.name != "tiproxy")


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


def scrape_configs(inputs: Inputs, shards: int, operator_namespace: str = "") -> list[Json]:
    """The section `scrape_configs`; includes the operator if its namespace is given."""
    found = [_entry(job, each, shards) for job in jobs_of_cluster() for each in inputs.clusters]
    found += [_entry(job, each, shards) for job in jobs_of_table(DM_CLUSTER) for each in inputs.dm_clusters]
    return [*found, _operator(operator_namespace, shards)] if operator_namespace else found


def _entry(job: Job, target: Target, shards: int) -> Json:
    return {
        "job_name": f"{target.namespace}-{target.name}-{job.name}",
        "honor_labels": True,
        "scrape_interval": _INTERVAL,
        "scheme": "https" if target.secret else "http",
        "kubernetes_sd_configs": _discovery(target.namespace),
        "tls_config": _tls(job, target),
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


def _tls(job: Job, target: Target) -> Json:
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
