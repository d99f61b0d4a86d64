"""The time that the servers of a cluster take to start, from the history of its pods."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from apis.accessor import COMPONENT_LABEL
from apis.components import component_names
from apis.times import parse_time
from dataplane.pd import UP
from kube.objects import Json, condition_of
from sandbox.timings import Timings

_STORES = component_names(lambda row: row.is_store)
_LONGEST = 3600.0
"""Seconds after which a pod that becomes Ready does not do so for the first time."""


def own_starts(pods: Iterable[Json], clusters: Iterable[Json] = ()) -> dict[str, float]:
    """Seconds from the start of a server's container until it served, by component: the shortest of its pods.

    A server of TiKV or TiFlash serves when PD reports its store as Up, which the status of its cluster shows; any other
    when its pod is Ready. The time before, e.g. for the image and the volume, passes only at a pod's first start on its
    node. A pod that was not Ready again later, or a container that has restarted, says nothing.
    """
    stores = dict(_up(clusters))
    starts: dict[str, float] = {}
    for pod in pods:
        meta = pod["metadata"]
        component = (meta.get("labels") or {}).get(COMPONENT_LABEL, "")
        ready = condition_of((pod.get("status") or {}).get("conditions") or (), "Ready").get("lastTransitionTime")
        served = stores.get((meta["namespace"], meta["name"])) if component in _STORES else ready
        seconds = _start_of(pod, component, served)
        if component and seconds is not None:
            starts[component] = min(seconds, starts.get(component, seconds))
    return starts


def _up(clusters: Iterable[Json]) -> Iterator[tuple[tuple[str, str], str]]:
    """The times since which stores have been Up, by the namespaces and names of their pods."""
    for cluster in clusters:
        status = cluster.get("status") or {}
        for store in (store for part in _STORES for store in ((status.get(part) or {}).get("stores") or {}).values()):
            if store.get("state") == UP:
                yield (cluster["metadata"]["namespace"], store["podName"]), store.get("lastTransitionTime") or ""


def _start_of(pod: Json, component: str, served: str | None) -> float | None:
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    if any(each.get("restartCount") for each in containers):
        return None
    server: Json = next((each for each in containers if each.get("name") == component), {})
    running = (server.get("state") or {}).get("running") or {}
    began, ended = _time(running.get("startedAt")), _time(served)
    seconds = (ended - began).total_seconds() if began and ended else 0.0
    return seconds if 0.0 < seconds <= _LONGEST else None


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
