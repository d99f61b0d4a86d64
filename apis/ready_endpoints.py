"""The annotation with which the pods of a cluster count as ready when their servers say so.

A server of PD answers that it is not ready until the first TiKV has started, which finds PD only through ready pods. So
PD keeps its probe, as do servers of which no release is known to have such an endpoint.
"""

from collections.abc import Iterator

from apis import images
from apis.accessor import Component, workloads
from apis.cluster import Cluster
from apis.components import component_names
from apis.problem import Problem

READY_ENDPOINTS = "tidb.pingcap.com/ready-endpoints"
"""The annotation of a TidbCluster. Not known to v1.6."""

_PLACE = f'metadata.annotations["{READY_ENDPOINTS}"]'


def asks_ready_endpoint(own: Component) -> bool:
    """True if the readiness probe of a component asks its server; a probe of the user's comes first."""
    is_on = own.tc.metadata.annotations.get(READY_ENDPOINTS) == "true"
    return is_on and _has_endpoint(own) and not _probe_of(own)


def without_effect(tc: Cluster) -> Iterator[Problem]:
    """The components with such an endpoint in some version whose probes do not ask it despite the annotation."""
    if tc.metadata.annotations.get(READY_ENDPOINTS) != "true":
        return
    able = [own for own in workloads(tc) if own.type.ready_since]
    for own in able:
        why = ""
        if probe := _probe_of(own):
            why = f"because {probe} is the user's; remove that probe"
        elif not _has_endpoint(own):
            why = f"which runs {own.version or 'an unknown version'}: it needs {own.type.ready_since} or later"
        if why:
            yield Problem(_PLACE, "true", f"has no effect on {own.name}, {why}")
    if not able:
        names = ", ".join(component_names(lambda row: bool(row.ready_since)))
        yield Problem(_PLACE, "true", f"has no effect, because only {names} have such an endpoint; remove it")


def _has_endpoint(own: Component) -> bool:
    """True if the version is known, and has the endpoint."""
    since, known = own.type.ready_since, images.order(own.version) != images.NEWEST
    return bool(since) and known and images.at_least(own.version, since)


def _probe_of(own: Component) -> str:
    """The path of the user's own readiness probe of a component's main container; empty without one."""
    if own.spec.readiness_probe is not None:
        return f"{own.field}.readinessProbe"
    for index, container in enumerate(own.spec.additional_containers):
        if container.get("name") == own.name and container.get("readinessProbe"):
            return f"{own.field}.additionalContainers[{index}].readinessProbe"
    return ""
