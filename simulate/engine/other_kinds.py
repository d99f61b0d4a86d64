"""The other kinds (not TidbClusters, Backups, Restores) in plans: users' edits, and required ends.

Each must end Ready with nothing left to do, or with a reason if the plan allows it (`ends_beside`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kube.objects import Json, condition_of
from kube.resources import (
    DM_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from simulate.engine.plan import Edit, World, reasons
from simulate.engine.worlds import NAME, NAMESPACE

OTHER_KINDS = (DM_CLUSTERS, TIDB_MONITORS, TIDB_INITIALIZERS, TIDB_DASHBOARDS, TIDB_NG_MONITORINGS)

DM = "sync"
"""The name of the DMCluster in plans."""
BESIDE = "beside"
"""The name of all other objects."""

_STORAGE = {"requests": {"storage": "1Gi"}}


def _dm() -> Json:
    master = {"baseImage": "pingcap/dm", "replicas": 3, "storageSize": "1Gi", "config": 'log-level = "info"\n'}
    worker = {"baseImage": "pingcap/dm", "replicas": 2, "storageSize": "1Gi", "config": 'log-level = "info"\n'}
    common = {"version": "v8.5.2", "timezone": "UTC", "configUpdateStrategy": "RollingUpdate", "discovery": {}}
    return common | {"pvReclaimPolicy": "Retain", "master": master, "worker": worker}


def _monitor(cluster: str) -> Json:
    return {
        "clusters": [{"name": cluster}],
        "persistent": True,
        "storage": "1Gi",
        "prometheus": {"baseImage": "prom/prometheus", "version": "v2.53.5"},
        "prometheusReloader": {"baseImage": "quay.io/prometheus-operator/reloader", "version": "v0.49.0"},
        "grafana": {"baseImage": "grafana/grafana", "version": "7.5.11", "password": "change-me"},
        "reloader": {"baseImage": "pingcap/tidb-monitor-reloader", "version": "v1.0.1"},
        "initializer": {"baseImage": "pingcap/tidb-monitor-initializer", "version": "v8.5.2"},
    }


def _initializer(cluster: str) -> Json:
    return {"image": "tnir/mysqlclient", "cluster": {"name": cluster}, "initSql": "CREATE DATABASE IF NOT EXISTS app;"}


def _dashboard(cluster: str) -> Json:
    return {"baseImage": "pingcap/tidb-dashboard", "version": "v8.5.2", "clusters": [{"name": cluster}]} | _STORAGE


def _ng_monitoring(cluster: str) -> Json:
    own = {"baseImage": "pingcap/ng-monitoring", "version": "v8.5.2"} | _STORAGE
    return {"clusters": [{"name": cluster}], "ngMonitoring": own}


_SPECS: Mapping[Resource, Callable[[str], Json]] = {
    DM_CLUSTERS: lambda _: _dm(),
    TIDB_MONITORS: _monitor,
    TIDB_INITIALIZERS: _initializer,
    TIDB_DASHBOARDS: _dashboard,
    TIDB_NG_MONITORINGS: _ng_monitoring,
}
"""The spec of each kind, for a TidbCluster with this name."""


def spec_of_kind(resource: Resource, cluster: str = NAME) -> Json:
    """A user's spec, without anything random."""
    return _SPECS[resource](cluster)


def name_of(resource: Resource) -> str:
    """The name of a kind's object."""
    return DM if resource == DM_CLUSTERS else BESIDE


def made(at: float, resource: Resource, spec: Json | None = None) -> Edit:
    """Create the object, by default with the common spec."""
    body = {"spec": spec_of_kind(resource) if spec is None else spec}
    return Edit(at=at, target=f"{resource}/{name_of(resource)}", body=body)


def changed(at: float, resource: Resource, **spec: Any) -> Edit:
    """Change the object."""
    return Edit(at=at, target=f"{resource}/{name_of(resource)}", spec=spec)


def deleted(at: float, resource: Resource) -> Edit:
    """Delete the object."""
    return Edit(at=at, delete=f"{resource}/{name_of(resource)}")


def sources(at: float, *names: str) -> World:
    """Create DM's sources."""
    arguments = {"cluster": f"{NAMESPACE}/{DM}", "names": list(names)}
    return World(at=at, verb="dm_sources", arguments=arguments, seconds=0.0, if_there=True)


def unfinished(objects: Callable[[Resource], list[Json]], ends: Mapping[str, str | tuple[str, ...]]) -> Iterator[str]:
    """The kinds that did not end as required, in words. For `ends` see `Plan.ends_beside`."""
    for resource in OTHER_KINDS:
        for tree in objects(resource):
            name = f"{resource}/{tree['metadata']['name']}"
            conditions = (tree.get("status") or {}).get("conditions") or ()
            ready, progressing = condition_of(conditions, "Ready"), condition_of(conditions, "Progressing")
            if (wanted := ends.get(name, "Done")) == "*" and progressing:
                continue
            reason = progressing.get("reason")
            if reason not in reasons(wanted) or (reason == "Done" and ready.get("status") != "True"):
                yield f"{name} ends with {progressing or 'no word'}, Ready is {ready.get('status')}"
