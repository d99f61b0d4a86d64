"""The annotation with which the pods of a cluster stop gracefully by themselves, without the operator (ADR 19)."""

from collections.abc import Iterator
from operator import attrgetter

from apis.accessor import Component, workloads
from apis.cluster import Cluster
from apis.components import component_names
from apis.problem import Problem

GRACEFUL_STOP = "tidb.pingcap.com/graceful-stop"
"""The annotation of a TidbCluster. Not known to v1.6."""

_PLACE = f'metadata.annotations["{GRACEFUL_STOP}"]'


def stops_gracefully(own: Component) -> bool:
    """True if the pods of a component have the hooks; hooks of the user's come first."""
    return own.type.has_graceful_stop and own.tc.metadata.annotations.get(GRACEFUL_STOP) == "true" and not _hook_of(own)


def without_effect(tc: Cluster) -> Iterator[Problem]:
    """The components that keep stopping without the hooks although the cluster has the annotation."""
    if tc.metadata.annotations.get(GRACEFUL_STOP) != "true":
        return
    able = [own for own in workloads(tc) if own.type.has_graceful_stop]
    for own in able:
        if hook := _hook_of(own):
            message = (
                f"has no effect on {own.name}, because {hook} is the user's; remove that hook, or do its work there"
            )
            yield Problem(_PLACE, "true", message)
    if not able:
        names = ", ".join(component_names(attrgetter("has_graceful_stop")))
        yield Problem(_PLACE, "true", f"has no effect, because only {names} have these hooks; remove it")


def _hook_of(own: Component) -> str:
    """The path of the user's own hooks in a component's main container; empty without any."""
    for index, container in enumerate(own.spec.additional_containers):
        hooks = container.get("lifecycle") or {}
        if container.get("name") == own.name and (hooks.get("preStop") or hooks.get("postStart")):
            return f"{own.field}.additionalContainers[{index}].lifecycle"
    return ""
