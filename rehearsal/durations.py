"""The time that the servers of a cluster take to start, from the history of its pods."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeAlias

from apis.accessor import COMPONENT_LABEL
from apis.components import component_names
from apis.times import parse_time
from dataplane.pd import UP
from kube.objects import Json, condition_of
from sandbox.timings import Timings

_STORES = component_names(lambda row: row.is_store)
_QUORUMS = {"pd": "pd", "dm-master": "master"}
"""Components whose members elect a leader, and their parts of a status."""
_LONGEST = 3600.0
"""Seconds after which a pod that becomes Ready does not do so for the first time."""
_NEW = 60.0
"""Seconds within which a StatefulSet creates a pod after its claim, unless the claim is of an earlier pod."""

_Name: TypeAlias = tuple[str, str]
"""Namespace and name."""


def own_starts(pods: Iterable[Json], clusters: Iterable[Json] = (), claims: Iterable[Json] = ()) -> dict[str, float]:
    """Seconds from the start of a server's container until it served, by component: the shortest of its pods.

    A server of TiKV or TiFlash serves when PD reports its store as Up, and a member of PD when PD reports it as
    healthy, which the status of its cluster shows; any other when its pod is Ready. The time before, e.g. for the image
    and the volume, passes only at a pod's first start on its node.

    A pod that was not Ready again later, or a container that has restarted, says nothing. Nor does a member that had to
    join. If a member of PD started after a store, PD has learned of the store again, so the time is not its start's.
    """
    pods, clusters = list(pods), list(clusters)
    reported = dict(_up(clusters)) | dict(_healthy(clusters))
    starts_of_pd = [time for pod in pods if _component(pod) == "pd" and (time := _started_at(pod))]
    ages = {_name(claim): _time(claim["metadata"].get("creationTimestamp")) for claim in claims}
    starts: dict[str, float] = {}
    for pod in pods:
        component = _component(pod)
        ready = condition_of((pod.get("status") or {}).get("conditions") or (), "Ready").get("lastTransitionTime")
        is_reported = component in _STORES or component in _QUORUMS
        began, ended = _start_of(pod), _time(reported.get(_name(pod)) if is_reported else ready)
        if not component or not began or not ended:
            continue
        if component in _QUORUMS and not _continues(pod, ages):
            continue
        if component in _STORES and any(began < other < ended for other in starts_of_pd):
            continue
        seconds = (ended - began).total_seconds()
        if 0.0 < seconds <= _LONGEST:
            starts[component] = min(seconds, starts.get(component, seconds))
    return starts


def _up(clusters: Iterable[Json]) -> Iterator[tuple[_Name, str]]:
    """The times since which stores have been Up, by the names of their pods."""
    for cluster in clusters:
        status = cluster.get("status") or {}
        for store in (store for part in _STORES for store in ((status.get(part) or {}).get("stores") or {}).values()):
            if store.get("state") == UP:
                yield (cluster["metadata"]["namespace"], store["podName"]), store.get("lastTransitionTime") or ""


def _healthy(clusters: Iterable[Json]) -> Iterator[tuple[_Name, str]]:
    """The times since which members have been healthy, by the names of their pods."""
    for cluster in clusters:
        status = cluster.get("status") or {}
        for part in _QUORUMS.values():
            for name, member in ((status.get(part) or {}).get("members") or {}).items():
                if member.get("health"):
                    pod = name.partition(".")[0]
                    yield (cluster["metadata"]["namespace"], pod), member.get("lastTransitionTime") or ""


def _continues(pod: Json, ages: Mapping[_Name, datetime | None]) -> bool:
    """True if a pod has a claim of an earlier one, so that its server need not join, or wait for others that do."""
    namespace, created = pod["metadata"]["namespace"], _time(pod["metadata"].get("creationTimestamp"))
    volumes = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or ())
    made = (ages.get((namespace, claim["claimName"])) for claim in volumes if claim)
    return any(age and created and (created - age).total_seconds() > _NEW for age in made)


def _start_of(pod: Json) -> datetime | None:
    """When the container of a pod's server started; None if it, or another one, has restarted."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return None if any(each.get("restartCount") for each in containers) else _started_at(pod)


def _started_at(pod: Json) -> datetime | None:
    """When the container of a pod's server started last."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    server: Json = next((each for each in containers if each.get("name") == _component(pod)), {})
    return _time(((server.get("state") or {}).get("running") or {}).get("startedAt"))


def _component(pod: Json) -> str:
    return str((pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL, ""))


def _name(tree: Json) -> _Name:
    return tree["metadata"]["namespace"], tree["metadata"]["name"]


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def typical(timings: Timings) -> dict[str, float]:
    """As `own_starts`, in a typical cluster."""
    return {
        "pd": timings.pd_start,
        "dm-master": timings.pd_start,
        "tikv": timings.tikv_start,
        "tiflash": timings.tikv_start + timings.tiflash_start,
        "tidb": timings.tidb_start,
        "ticdc": timings.capture_start,
        "pump": timings.pump_start,
        "tici-meta": timings.tici_start,
        "tici-worker": timings.tici_start,
        "dm-worker": timings.dm_worker_start,
    }


def delays(starts: Mapping[str, float], timings: Timings) -> dict[str, float]:
    """The seconds by which the servers of components start later than typical ones; typical ones are left out."""
    later = {
        component: starts[component] - seconds for component, seconds in typical(timings).items() if component in starts
    }
    return {component: seconds for component, seconds in later.items() if seconds > 0}
