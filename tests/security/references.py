"""Two namespaces: one of an author, who names objects of the other one, and one of their owner, who may consent."""

import base64
from dataclasses import dataclass, field, replace
from typing import Any

from apis.consent import ALLOWED_FROM, parse_policy
from apis.monitors import CLUSTER_SELECTOR
from kube.objects import Json, Object
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    COMPACT_BACKUPS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    EVENTS,
    JOBS,
    NAMESPACES,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from rehearsal.operator import SETTINGS
from tests.apis.backups import S3, by_br
from tests.apis.clusters import minimal
from tests.controllers.simple_world import NAMESPACE, SimpleWorld
from tests.controllers.tidbmonitor.monitors import CONTAINERS

AUTHOR, OWNER = NAMESPACE, "owner"
MARK = "OWNERS"
"""The beginning of every secret of the owner: six bytes, so that it shows in base64, too."""
TARGET = "vault"
"""The name of everything that the owner has."""

_MADE = (SECRETS, CONFIG_MAPS, SERVICES, STATEFUL_SETS, DEPLOYMENTS, JOBS, ROLES, ROLE_BINDINGS, EVENTS)
_WRITTEN_TO = (
    *(TIDB_CLUSTERS, TIDB_MONITORS, TIDB_DASHBOARDS, TIDB_NG_MONITORINGS),
    *(BACKUPS, RESTORES, COMPACT_BACKUPS),
)
REACHING = (STATEFUL_SETS, JOBS, ROLE_BINDINGS)


@dataclass(frozen=True, slots=True)
class Case:
    """One field that can name another namespace: an object with it, and the named object."""

    name: str
    resource: Resource
    spec: Json
    target: Resource = TIDB_CLUSTERS
    annotations: dict[str, str] = field(default_factory=dict)


class TwoNamespaces(SimpleWorld):
    """The whole operator, a TidbCluster, a DMCluster and a ConfigMap of the owner, and nothing of the author yet."""

    def __init__(self, resource: Resource, **options: Any) -> None:
        super().__init__(resource, **options)
        self.admin.create(NAMESPACES, {"metadata": {"name": OWNER}})
        keys_of_storage = {"metadata": {"name": "keys"}, "data": {"access_key": "QUs=", "secret_key": "U0s="}}
        self.admin.create(SECRETS, keys_of_storage, AUTHOR)
        keys = ("ca.crt", "tls.crt", "tls.key", "password-of-something-else")
        data = {key: base64.b64encode(f"{MARK} {key}".encode()).decode() for key in keys}
        for kind in ("cluster", "dm"):
            self.admin.create(SECRETS, {"metadata": {"name": f"{TARGET}-{kind}-client-secret"}, "data": data}, OWNER)
        config = {"prometheus-config": f"# {MARK}\nglobal: {{}}\n"}
        self.admin.create(CONFIG_MAPS, {"metadata": {"name": TARGET}, "data": config}, OWNER)
        self._create(TIDB_CLUSTERS, minimal() | {"paused": True, "tlsCluster": {"enabled": True}})
        master = {"replicas": 1, "baseImage": "pingcap/dm"}
        dm = {"version": "v8.5.2", "paused": True, "discovery": {}, "master": master, "tlsCluster": {"enabled": True}}
        self._create(DM_CLUSTERS, dm)

    def _create(self, resource: Resource, spec: Json) -> None:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata = {"name": TARGET, "labels": {"team": "a"}}
        self.admin.create(resource, head | {"metadata": metadata, "spec": spec}, OWNER)

    def permit(self, flag: str) -> None:
        """Restart the operator with another value of the flag."""
        self.use(settings=replace(SETTINGS, references=parse_policy(flag)))
        self.run()

    def refer(self, case: Case) -> None:
        """Create the object of a case as its author."""
        self.add(annotations=case.annotations, **case.spec)
        self.run(15.0)

    def consent(self, case: Case, value: str | None = AUTHOR) -> None:
        """Give or withdraw the owner's consent; only the operator's work takes time."""
        self.admin.patch(case.target, TARGET, OWNER, {"metadata": {"annotations": {ALLOWED_FROM: value}}})
        # no informer watches ConfigMaps of users
        self.run(1.0 if case.target != CONFIG_MAPS else 40.0)

    def said(self) -> str:
        """All reasons and messages in the status of the author's object; for a CompactBackup, the status is one
        message."""
        status = self.status()
        said = [f"{each.get('reason')}: {each.get('message')}" for each in status.get("conditions") or ()]
        return "\n".join([*said, str(status.get("message") or "")])

    def is_refused(self) -> bool:
        """True if the status says that a reference needs consent, or the administrator's permission."""
        said = self.said()
        return "does not allow references from namespace" in said or "for which no owner can consent" in said

    def written(self) -> list[Object]:
        """Every object in the author's namespace that the operator writes."""
        return [each for kind in (*_MADE, *_WRITTEN_TO) for each in self.admin.list_page(kind, AUTHOR).items]

    def leaks(self) -> list[str]:
        """The objects in the author's namespace that hold something of the owner's."""
        marks = (MARK.encode(), base64.b64encode(MARK.encode()))
        return [f"{each.kind} {each.metadata.name}" for each in self.written() if any(m in each.raw for m in marks)]

    def reaching(self) -> list[str]:
        """The author's running objects and rights, by name, except Discovery's, which serves its own namespace only."""
        return [name for kind in REACHING for name in self.names(kind) if not name.endswith("-discovery")]

    def rights_everywhere(self) -> list[str]:
        """The rights in all namespaces that the author's monitor has."""
        found = [each for kind in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS) for each in self.admin.list_page(kind).items]
        return [f"{each.kind} {each.metadata.name}" for each in found if each.metadata.name == f"{AUTHOR}-demo-monitor"]


def of_monitor(name: str, target: Resource = TIDB_CLUSTERS, **case: Any) -> Case:
    """A case of TidbMonitor, whose spec is complete but for what `spec` has."""
    spec = CONTAINERS | case.pop("spec", {})
    return Case(name, TIDB_MONITORS, spec, target, **case)


THERE = {"name": TARGET, "namespace": OWNER}
MONITORS = (
    of_monitor("spec.clusters[].namespace", spec={"clusters": [THERE]}),
    of_monitor(
        "spec.dm.clusters[].namespace",
        DM_CLUSTERS,
        spec={"dm": {"clusters": [THERE], "initializer": CONTAINERS["initializer"]}},
    ),
    of_monitor(
        "spec.prometheus.config.configMapRef.namespace",
        CONFIG_MAPS,
        spec={
            "clusters": [{"name": "own"}],
            "prometheus": CONTAINERS["prometheus"] | {"config": {"configMapRef": THERE}},
        },
    ),
)


DASHBOARDS = (
    Case(
        "spec.clusters[].namespace",
        TIDB_DASHBOARDS,
        {"clusters": [THERE], "version": "v8.5.2", "requests": {"storage": "1Gi"}},
    ),
    Case(
        "spec.clusters[].namespace",
        TIDB_NG_MONITORINGS,
        {"clusters": [THERE], "ngMonitoring": {"version": "v8.5.2", "requests": {"storage": "1Gi"}}},
    ),
)

ELSEWHERE = {"cluster": TARGET, "clusterNamespace": OWNER}
JOBS_OF = (
    Case("spec.br.clusterNamespace", BACKUPS, by_br(br=ELSEWHERE)),
    Case("spec.br.clusterNamespace (log)", BACKUPS, by_br(br=ELSEWHERE, backupMode="log")),
    Case("spec.br.clusterNamespace", RESTORES, by_br(br=ELSEWHERE)),
    Case(
        "spec.br.clusterNamespace (pitr)",
        RESTORES,
        by_br(br=ELSEWHERE, restoreMode="pitr", pitrFullBackupStorageProvider={"s3": S3}),
    ),
    Case(
        "spec.br.clusterNamespace",
        COMPACT_BACKUPS,
        by_br(br=ELSEWHERE, startTs="2026-01-01T00:00:00Z", endTs="2026-01-02T00:00:00Z"),
    ),
)

JOINING = (
    Case(
        "spec.cluster.namespace",
        TIDB_CLUSTERS,
        {key: value for key, value in minimal().items() if key != "pd"} | {"cluster": THERE},
    ),
    Case("spec.cluster.namespace (with a PD of its own)", TIDB_CLUSTERS, minimal() | {"cluster": THERE}),
    *(
        Case(f"spec.pdAddresses ({host})", TIDB_CLUSTERS, minimal() | {"pdAddresses": [f"http://{host}:2379"]})
        for host in (
            f"{TARGET}-pd.{OWNER}",
            f"{TARGET}-pd.{OWNER}.svc",
            f"{TARGET}-pd-0.{TARGET}-pd-peer.{OWNER}.svc.cluster.local",
        )
    ),
)

SCHEDULE = Case(
    "spec.backupTemplate.br.clusterNamespace",
    BACKUP_SCHEDULES,
    {"schedule": "* * * * *", "backupTemplate": by_br(br=ELSEWHERE)},
)
EVERYWHERE = of_monitor("spec.clusterScoped", spec={"clusters": [{"name": "own"}], "clusterScoped": True})
SELECTING = of_monitor(f"metadata.annotations[{CLUSTER_SELECTOR}]", spec={"clusterScoped": True})
