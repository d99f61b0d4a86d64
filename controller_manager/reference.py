"""`python -m controller_manager.reference [--check]`: write docs/metrics.md and docs/flags.md, or report outdated ones.

Names, types and meanings come from a process that is assembled but not started. The labels are listed here, and a test
compares them with a scrape by Prometheus (`tests/e2e/test_prometheus.py`).
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from controller_manager.flags import described, parse
from controller_manager.tidb import tidb_controller_manager
from kube.config import ClusterConfig
from ports.clock import SystemClock
from ports.randomness import SeededRandomness

_ROOT = Path(__file__).resolve().parents[1]
PAGE = _ROOT / "docs" / "metrics.md"
FLAGS = _ROOT / "docs" / "flags.md"
ALERTS = _ROOT / "manifests" / "monitoring" / "alerts.yaml"

_SUFFIXES = {"counter": "_total", "info": "_info"}
_TYPES = {"unknown": "untyped", "info": "gauge"}

_FROM_CLIENT = ("process_", "python_")
"""Prefixes of the metrics that the Prometheus client library itself exports."""

_CLUSTER = ("namespace", "name")
_COMPONENT = (*_CLUSTER, "component")
_CONTROLLER = ("controller",)
_QUEUE = ("name",)
_REQUEST = ("verb", "host")
_INFORMER = ("name", "group", "version", "resource")
_HANDLER = ("resource", "handler")


@dataclass(frozen=True, slots=True)
class Topic:
    """The common part of several metrics, in words, and their labels by name.

    `as_those` begins the names of other metrics, which mean the same of other objects.
    """

    says: str
    labels: Mapping[str, Sequence[str]]
    as_those: str = ""


_CLUSTERS = {
    "ready": _CLUSTER,
    "condition": (*_CLUSTER, "condition", "reason"),
    "waiting_seconds": (*_CLUSTER, "reason"),
    "component_condition": (*_COMPONENT, "condition", "reason"),
    "component_waiting_seconds": (*_COMPONENT, "reason"),
    "spec_replicas": _COMPONENT,
    "desired_replicas": _COMPONENT,
    "ready_replicas": _COMPONENT,
    "outdated_replicas": _COMPONENT,
    "members": _COMPONENT,
    "healthy_members": _COMPONENT,
    "observed": _COMPONENT,
    "pod_unready": (*_COMPONENT, "pod", "reason"),
    "unavailable": (*_COMPONENT, "reason"),
    "failure_members": _COMPONENT,
    "version_info": (*_COMPONENT, "version"),
    "refused": (*_COMPONENT, "reason"),
    "certificate_expiry_seconds": (*_CLUSTER, "secret"),
    "operators": _CLUSTER,
    "sync_age_seconds": _CLUSTER,
    "update_errors": _COMPONENT,
}

_OF_DM_CLUSTERS = ("ready", "condition", "members", "healthy_members", "observed", "unavailable")

TOPICS: Mapping[str, Topic] = {
    "Clusters": Topic(
        "Only the leader serves them, from its cache; a deleted cluster has none. `reason` is one of "
        "[the reasons](reasons/README.md); in `..._pod_unready` it is a word such as `Missing`, `Unschedulable`, "
        "`NotReady`, `CrashLoopBackOff`, `MemberUnhealthy` or `StoreDown`. In `..._refused` and `..._update_errors`, "
        "`component` is the stage: a component, or another stage such as `meta`. When the leader changes, these two "
        "and `..._sync_age_seconds` restart. v1.6 has `..._spec_replicas` and `..._update_errors` only.",
        {f"tidb_operator_cluster_{name}": labels for name, labels in _CLUSTERS.items()},
    ),
    "DMClusters": Topic(
        "Only the leader serves them; `component` is `dm-master` or `dm-worker`.",
        {f"tidb_operator_dm_cluster_{name}": _CLUSTERS[name] for name in _OF_DM_CLUSTERS},
        as_those="tidb_operator_cluster_",
    ),
    "Backups": Topic(
        "Only the leader serves them; v1.6 has none. A log backup that is paused or stopped has no lag.",
        {
            "tidb_operator_log_backup_checkpoint_lag_seconds": _CLUSTER,
            "tidb_operator_backup_clean_failed": _CLUSTER,
            "tidb_operator_backup_schedule_overdue": _CLUSTER,
            "tidb_operator_backup_schedule_last_complete_timestamp_seconds": _CLUSTER,
            "tidb_operator_backup_schedule_active": (*_CLUSTER, "reason"),
        },
    ),
    "Observing": Topic(
        "Writes suppressed by `-observe` or by the annotation `tidb.pingcap.com/observe`, and the objects with that "
        "annotation ([migration.md](migration.md)); v1.6 has none.",
        {"tidb_operator_planned_writes_total": ("verb", "resource"), "tidb_operator_observed": ("kind", *_CLUSTER)},
    ),
    "Leadership": Topic(
        "`name` is the name of the Lease.",
        {"leader_election_master_status": ("name",), "leader_election_slowpath_total": ("name",)},
    ),
    "Shards": Topic(
        "v1.6 has none. With `-shards` above 1, the metrics above name the holder of each shard's Lease.",
        {
            "tidb_operator_shards": (),
            "tidb_operator_shards_held": (),
            "tidb_operator_shard_moves_total": ("move",),
        },
    ),
    "Controllers": Topic(
        "On a standby they are 0. Names and labels are the same as in v1.6, except the last.",
        {
            "controller_runtime_reconcile_total": ("controller", "result"),
            "controller_runtime_reconcile_errors_total": _CONTROLLER,
            "controller_runtime_reconcile_time_seconds": _CONTROLLER,
            "controller_runtime_max_concurrent_reconciles": _CONTROLLER,
            "controller_runtime_active_workers": _CONTROLLER,
            "tidb_operator_throttled_retries_total": _CONTROLLER,
        },
    ),
    "Queues": Topic(
        "A standby fills its queues and processes nothing. Names and labels are the same as in v1.6; "
        "`workqueue_depth` also has `priority`.",
        {
            "workqueue_depth": (*_QUEUE, "priority"),
            "workqueue_adds_total": _QUEUE,
            "workqueue_retries_total": _QUEUE,
            "workqueue_queue_duration_seconds": _QUEUE,
            "workqueue_work_duration_seconds": _QUEUE,
            "workqueue_unfinished_work_seconds": _QUEUE,
            "workqueue_longest_running_processor_seconds": _QUEUE,
        },
    ),
    "Requests to the API server": Topic(
        "Names and labels are the same as in client-go; `host` includes the port.",
        {
            "rest_client_requests_total": ("code", "method", "host"),
            "rest_client_request_retries_total": ("code", "verb", "host"),
            "rest_client_request_duration_seconds": _REQUEST,
            "rest_client_rate_limiter_duration_seconds": _REQUEST,
            "rest_client_request_size_bytes": _REQUEST,
            "rest_client_response_size_bytes": _REQUEST,
        },
    ),
    "Caches": Topic(
        "A standby keeps its caches filled. `name` is empty except for the cache of Secret metadata.",
        {
            "informer_lists_total": ("resource", "result"),
            "informer_watches_total": ("resource", "reason"),
            "informer_last_event_timestamp_seconds": ("resource",),
            "informer_handler_pending": _HANDLER,
            "informer_handler_failures_total": _HANDLER,
            "informer_index_failures_total": ("resource", "index"),
            "informer_unreadable_objects_total": ("resource",),
            "informer_queued_items": _INFORMER,
            "informer_processing_latency_seconds": _INFORMER,
            "informer_store_resource_version": _INFORMER,
        },
    ),
    "The process": Topic(
        "The version, and the resources that the process uses.",
        {
            "tidb_operator_build_info": ("version", "python"),
            "process_cpu_seconds_total": (),
            "process_resident_memory_bytes": (),
            "process_virtual_memory_bytes": (),
            "process_open_fds": (),
            "process_max_fds": (),
            "process_start_time_seconds": (),
            "python_info": ("implementation", "major", "minor", "patchlevel", "version"),
            "python_gc_collections_total": ("generation",),
            "python_gc_objects_collected_total": ("generation",),
            "python_gc_objects_uncollectable_total": ("generation",),
        },
    ),
}

_HEAD = """<!-- Generated by `python -m controller_manager.reference`. -->

# Metrics

`GET :6060/metrics` of every controller-manager, in Prometheus' text format; `-metrics-addr` changes the address.
Scrape every pod (the endpoints of the Service `tidb-controller-manager`) with `honor_labels: true`, or the namespaces
of clusters become `exported_namespace`. Rules for Prometheus and a dashboard for Grafana are in
[manifests/monitoring](../manifests/monitoring/).

Every process serves all metrics, except where a section says that only the leader does. The lists have the type of a
metric in parentheses, then its labels.
"""

_ALERTS_HEAD = """## Alerts

The description of each in [alerts.yaml](../manifests/monitoring/alerts.yaml) says what it means and what to do.
"""

_TAIL = """Two operators that manage the same clusters raise `TidbOperatorTwoLeaders` if they share a Lease, else
`TidbClusterTwoOperators`, when one of them notices the other or one Prometheus scrapes both; see
[AnotherOperator](reasons/spec.md#anotheroperator). [TLS](tls.md#what-the-operator-reports) explains the alerts on
certificates.
"""


_FLAGS_HEAD = """\
<!-- Generated by `python -m controller_manager.reference`. -->

# Flags

The flags of `tidb-controller-manager`. One dash or two; a boolean flag needs no value. Flags of v1.6 that have no
effect here are accepted with a warning in the log. The environment variables are `NAMESPACE` (where the operator
runs), `HELM_RELEASE` (a suffix of its Lease) and `KUBECONFIG`.
"""


def metrics() -> Mapping[str, Metric]:
    """The metrics of a process by their scraped names. Starts nothing and sends nothing."""
    config = ClusterConfig(server="https://127.0.0.1", source="reference")
    made = tidb_controller_manager(parse((), {}, ""), config, {}, SystemClock(), SeededRandomness(0))
    return named(made.registry)


def named(registry: CollectorRegistry) -> Mapping[str, Metric]:
    """The families of a registry by their scraped names."""
    return {family.name + _SUFFIXES.get(family.type, ""): family for family in registry.collect()}


def labels() -> Mapping[str, Sequence[str]]:
    """The labels of each metric in the reference."""
    return {name: own for topic in TOPICS.values() for name, own in topic.labels.items()}


def differences(served: Mapping[str, Metric]) -> list[str]:
    """Differences between the served metrics and the reference, in words."""
    listed = labels().keys()
    unlisted = [f"{name} is served: give it a place in TOPICS" for name in sorted(served.keys() - listed)]
    return unlisted + [
        f"{name} is in TOPICS, but the operator does not serve it" for name in sorted(listed - served.keys())
    ]


def page(served: Mapping[str, Metric]) -> str:
    """The text of docs/metrics.md."""
    sections = [_HEAD, *(_section(title, topic, served) for title, topic in TOPICS.items()), _alerts(), _TAIL]
    return "\n".join(sections)


def flags_page() -> str:
    """The text of docs/flags.md."""
    names: dict[str, list[str]] = {}
    for name, text in described().items():
        component = name.removesuffix("-failover-period")
        names.setdefault(text.replace(f" {component} ", " "), []).append(f"`-{name}`")
    rows = (f"- {', '.join(flags)}: {text}" for text, flags in names.items())
    return "\n".join([_FLAGS_HEAD, *rows, ""])


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code: 1 if `--check` finds an outdated page."""
    parser = argparse.ArgumentParser(
        prog="python -m controller_manager.reference", description="Write docs/metrics.md and docs/flags.md."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    check: bool = parser.parse_args(arguments).check
    served = metrics()
    if wrong := differences(served):
        sys.stderr.write("\n".join([*wrong, ""]))
        return 1
    pages = {PAGE: page(served), FLAGS: flags_page()}
    if not check:
        for file, text in pages.items():
            file.write_text(text, encoding="utf-8")
        return 0
    old = [file for file, text in pages.items() if not file.exists() or file.read_text(encoding="utf-8") != text]
    for file in old:
        sys.stderr.write(f"{file} is not up to date; run `python -m controller_manager.reference`\n")
    return 1 if old else 0


def _section(title: str, topic: Topic, served: Mapping[str, Metric]) -> str:
    shared = _shared_labels(topic)
    says = f"{topic.says} All have {_labels(shared)}." if shared else topic.says
    own = {name: labels for name, labels in topic.labels.items() if not name.startswith(_FROM_CLIENT)}
    rows = [
        _row(name, [label for label in labels if label not in shared], served[name]) for name, labels in own.items()
    ]
    if topic.as_those:
        rows = [f"- {', '.join(f'`{name}`' for name in own)}: as `{topic.as_those}…`."]
    if others := ", ".join(f"`{name}`" for name in topic.labels if name not in own):
        rows.append(f"- {others}: see [Python's client](https://prometheus.github.io/client_python/collector/).")
    return "\n".join([f"## {title}\n", f"{says}\n", *rows, ""])


def _shared_labels(topic: Topic) -> list[str]:
    """The labels that all metrics of a topic have, in the order of the first one."""
    first, *others = topic.labels.values()
    return [label for label in first if others and all(label in own for own in others)]


def _labels(names: Sequence[str]) -> str:
    shown = " and ".join(f"`{name}`" for name in names)
    return f"the label{'s' if len(names) > 1 else ''} {shown}"


def _row(name: str, own: Sequence[str], family: Metric) -> str:
    labels = ", ".join(f"`{each}`" for each in own)
    kind = "; ".join(filter(None, [_TYPES.get(family.type, family.type), labels]))
    return f"- `{name}` ({kind}): {family.documentation.rstrip('.')}."


def _alerts() -> str:
    groups: list[Any] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    names: dict[str, list[str]] = {}
    for rule in (rule for group in groups for rule in group["rules"]):
        names.setdefault(rule["labels"]["severity"], []).append(f"`{rule['alert']}`")
    return "\n".join([_ALERTS_HEAD, *(f"- {severity}: {', '.join(named)}." for severity, named in names.items()), ""])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
