"""The time that the servers of a cluster take to start, from the history of its pods."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from apis.accessor import COMPONENT_LABEL
from apis.times import parse_time
from kube.objects import Json, condition_of
from sandbox.timings import Timings

_LONGEST = 3600.0
"""Seconds after which a pod that becomes Ready does not do so for the first time."""


def own_starts(pods: Iterable[Json]) -> dict[str, float]:
    """Seconds from the creation of a pod until it was Ready, by component: the shortest of its pods.

    A pod that was not Ready again later, or a container that has restarted, says nothing about its start.
    """
    found: dict[str, float] = {}
    for pod in pods:
        component = (pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL, "")
        seconds = _start_of(pod)
        if component and seconds is not None:
            found[component] = min(seconds, found.get(component, seconds))
    return found


def _start_of(pod: Json) -> float | None:
    status = pod.get("status") or {}
    if any(each.get("restartCount") for each in status.get("containerStatuses") or ()):
        return None
    began, ready = (
        _time(text)
        for text in (
            pod["metadata"].get("creationTimestamp"),
            condition_of(status.get("conditions") or (), "Ready").get("lastTransitionTime"),
        )
    )
    seconds = (ready - began).total_seconds() if began and ready else 0.0
    return seconds if 0.0 < seconds <= _LONGEST else None


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def delays(starts: Mapping[str, float], timings: Timings) -> dict[str, float]:
    """The seconds by which the servers of components start later than typical ones; typical ones are left out."""
    typical = {
        "pd": timings.pd_start,
        "dm-master": timings.pd_start,
        "tikv": timings.tikv_start,
        "tiflash": timings.tikv_start + timings.tiflash_start,
        "tidb": timings.tidb_start,
        "ticdc": timings.capture_start,
        "pump": timings.pump_start,
        "dm-worker": timings.dm_worker_start,
    }
    later = {
        component: starts[component] - timings.container_start - start
        for component, start in typical.items()
        if component in starts
    }
    return {component: seconds for component, seconds in later.items() if seconds > 0}
