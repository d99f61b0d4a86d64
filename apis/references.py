"""Every field by which an object can name another object, namespace or host, and what that lets its author do.

The table is part of docs/security.md: `python -m apis.references` writes it there, and a test compares the two. A test
finds fields of the definitions that have no row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from apis.crd import KINDS, definition
from apis.monitors import CLUSTER_SELECTOR, OPERATOR_NAMESPACE
from apis.shared import Json

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "security.md"
_BEGIN, _END = "<!-- apis/references.py: begin -->\n", "<!-- apis/references.py: end -->\n"

_NAMES = re.compile(
    r"(?i:namespaces?|refs?|(?<!permit)host|address(es)?|ur[il]|endpoint)$|^clusters?$"
    r"|(?i:(?<!clusterclient)secret|secrets|secretnames?|configmap|configmapname|serviceaccount|serviceaccountname|backupname)$"
)
"""The names of fields that name something. `mountClusterClientSecret` is a switch, `permitHost` belongs to SQL."""


class Reach(Enum):
    """The reach of a field. `CONSENT`: another namespace, whose object must consent; `ADMINISTRATOR`: all of them;
    `OWN`: the object's own namespace; `PODS`: everything that pods of that namespace reach."""

    CONSENT = "consent"
    ADMINISTRATOR = "administrator"
    OWN = "own"
    PODS = "pods"


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """Fields of some kinds that are treated alike; `*` in a path stands for anything, also for nothing,
    and case does not count.

    `lets` says what they let the author do without restrictions, `upstream` what v1.6 does, `here` what this operator
    does.
    """

    kinds: tuple[str, ...]
    paths: tuple[str, ...]
    reach: Reach
    lets: str
    upstream: str
    here: str

    def covers(self, kind: str, path: str) -> bool:
        """True if the row speaks of a field."""
        return kind in self.kinds and any(_pattern(each).fullmatch(path) for each in self.paths)


_EVERY_KIND = tuple(kind.name for kind in KINDS)
_JOBS = ("Backup", "Restore", "BackupSchedule", "CompactBackup")
_SERVED = "serves any"
_AS_PODS = "the same"

REFERENCES = (
    ReferenceField(
        ("TidbMonitor",),
        ("spec.clusters", "spec.clusters[].namespace"),
        Reach.CONSENT,
        "read the cluster's client certificate and private key, and appear in its TiDB Dashboard",
        "copies every key of the Secret",
        "needs the cluster's consent; copies `ca.crt`, `tls.crt` and `tls.key`",
    ),
    ReferenceField(
        ("TidbMonitor",),
        ("spec.dm.clusters", "spec.dm.clusters[].namespace"),
        Reach.CONSENT,
        "read the DMCluster's client certificate and private key",
        "copies every key of the Secret",
        "needs the DMCluster's consent; copies the same three keys",
    ),
    ReferenceField(
        ("TidbMonitor",),
        ("spec.prometheus.config.configMapRef", "spec.prometheus.config.configMapRef.namespace"),
        Reach.CONSENT,
        "read the key `prometheus-config` of any ConfigMap",
        "copies it",
        "needs the ConfigMap's consent",
    ),
    ReferenceField(
        ("TidbMonitor",),
        (f"metadata.annotations[{CLUSTER_SELECTOR}]",),
        Reach.CONSENT,
        "with `spec.clusterScoped` the same of every TidbCluster with some labels",
        "does not know it",
        "needs each cluster's consent, and reveals no other cluster",
    ),
    ReferenceField(
        ("TidbMonitor",),
        ("spec.clusterScoped",),
        Reach.ADMINISTRATOR,
        "let a ServiceAccount of the namespace read all pods",
        "binds a ClusterRole to it",
        "needs `-cross-namespace-references=NAMESPACE:*`",
    ),
    ReferenceField(
        ("TidbMonitor",),
        (f"metadata.annotations[{OPERATOR_NAMESPACE}]",),
        Reach.ADMINISTRATOR,
        "scrape the operator, whose metrics are open to anyone who reaches its port",
        "does not know it",
        "refused in another namespace without `spec.clusterScoped`",
    ),
    ReferenceField(
        ("TidbDashboard", "TidbNGMonitoring"),
        ("spec.clusters", "spec.clusters[].namespace"),
        Reach.CONSENT,
        "read the client certificates and private keys of the cluster and its SQL port",
        "copies them",
        "needs the cluster's consent",
    ),
    ReferenceField(
        ("TidbCluster",),
        ("spec.cluster", "spec.cluster.namespace"),
        Reach.CONSENT,
        "have the operator read and change PD of the cluster, even against NetworkPolicies",
        _SERVED,
        "needs that cluster's consent; with `clusterDomain` or `acrossK8s` only if it is in this Kubernetes",
    ),
    ReferenceField(
        ("TidbCluster",),
        ("spec.pdAddresses",),
        Reach.CONSENT,
        "have the operator call a host as a member of PD, if the author's PD announces it",
        "calls any",
        "needs the consent of a TidbCluster whose PD the host names; other hosts are called",
    ),
    ReferenceField(
        ("Backup",),
        ("spec.br.cluster", "spec.br.clusterNamespace"),
        Reach.CONSENT,
        "read all data of the cluster, log its changes, end log backups",
        _SERVED,
        "needs the cluster's consent",
    ),
    ReferenceField(
        ("Restore",),
        ("spec.br.cluster", "spec.br.clusterNamespace"),
        Reach.CONSENT,
        "overwrite data of the cluster, and have its TiKV restarted for a restore to a point in time",
        _SERVED,
        "needs the cluster's consent",
    ),
    ReferenceField(
        ("Restore",),
        ("spec.replicationConfig.compactBackupName",),
        Reach.OWN,
        "learn when a CompactBackup ends, and its message",
        "lacks the field; v1.7 does the same as here",
        "looks in the namespace of the Restore",
    ),
    ReferenceField(
        ("CompactBackup",),
        ("spec.br.cluster", "spec.br.clusterNamespace"),
        Reach.CONSENT,
        "learn the version of the cluster's TiKV",
        _SERVED,
        "needs the cluster's consent",
    ),
    ReferenceField(
        ("BackupSchedule",),
        ("spec.*br.cluster", "spec.*br.clusterNamespace"),
        Reach.CONSENT,
        "everything that its Backups and CompactBackups can reach",
        _SERVED,
        "they need the cluster's consent, each time",
    ),
    ReferenceField(
        ("TidbInitializer",),
        ("spec.cluster", "spec.cluster.namespace"),
        Reach.OWN,
        "run SQL as root in a cluster that has no password yet",
        "ignores the namespace",
        "refuses another namespace than its own",
    ),
    ReferenceField(
        ("TidbMonitor",),
        ("spec.prometheus.config.ruleConfigRef", "spec.prometheus.config.ruleConfigRef.namespace"),
        Reach.OWN,
        "mount a ConfigMap",
        "ignores the namespace",
        "ignores it too: pods mount objects of their own namespace",
    ),
    ReferenceField(
        _EVERY_KIND,
        (
            *("*Secret", "*Secrets", "*SecretName", "*SecretNames", "*ConfigMap", "*ConfigMapName"),
            *("*ServiceAccount", "*ServiceAccountName"),
        ),
        Reach.OWN,
        "mount, read or run as objects of the namespace, like any author of pods there",
        _AS_PODS,
        _AS_PODS,
    ),
    ReferenceField(
        ("Backup", "Restore", "BackupSchedule"),
        ("*.from.host", "*.to.host"),
        Reach.PODS,
        "connect to a SQL server with a password from a Secret beside the object",
        "a pod of the namespace connects",
        _AS_PODS,
    ),
    ReferenceField(
        (*_JOBS, "TidbCluster"),
        ("*.endpoint", "*.sinkURI"),
        Reach.PODS,
        "read and write object storage with keys from a Secret beside the object",
        "a pod of the namespace connects",
        "the same; the operator never does",
    ),
    ReferenceField(
        ("TidbMonitor",),
        (
            "spec.alertmanagerURL",
            "spec.kubePrometheusURL",
            "spec.prometheus.remoteWrite[].url",
            "spec.prometheus.remoteWrite[].proxyUrl",
        ),
        Reach.PODS,
        "have Prometheus or Grafana send to a host",
        "a pod of the namespace connects",
        _AS_PODS,
    ),
    ReferenceField(("DMCluster",), ("spec.discovery.address",), Reach.OWN, "nothing", "ignores it", "ignores it"),
)


def named_fields() -> Iterator[tuple[str, str]]:
    """Kind and path of every field of the specs that, by its name, names something."""
    for kind in KINDS:
        for version in definition(kind)["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            yield from ((kind.name, path) for path in _named(spec, "spec"))


def _named(schema: Json, path: str) -> Iterator[str]:
    for name, field in (schema.get("properties") or {}).items():
        if _NAMES.search(name):
            yield f"{path}.{name}"
        yield from _named(field, f"{path}.{name}")
    if isinstance(items := schema.get("items"), dict):
        yield from _named(items, f"{path}[]")


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\*", ".*"), re.IGNORECASE)


def table() -> str:
    """All rows as Markdown."""
    lines = ["| Kind | Field | What it lets the author do | v1.6 | This operator |", "|---|---|---|---|---|"]
    for row in REFERENCES:
        kinds = "every kind" if row.kinds == _EVERY_KIND else ", ".join(row.kinds)
        fields = ", ".join(f"`{path}`" for path in row.paths)
        lines.append(f"| {kinds} | {fields} | {row.lets} | {row.upstream} | {row.here} |")
    return "\n".join(lines) + "\n"


def document() -> str:
    """docs/security.md with the table as it is now."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.partition(_BEGIN)[0], text.partition(_END)[2]
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
