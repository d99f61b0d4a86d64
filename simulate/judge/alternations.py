"""Conditions whose reason alternates while nothing happens.

A reason that returns several times while spec, faults, pods, volumes and servers are the same is a defect. Two parts of
the operator contradict each other, or a condition shows in turn a failure and the wait between two such failures.
Servers that answer equal requests differently are no such case: the condition follows the answers, at the pace of
status writes.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

import msgspec

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, TIDB_CLUSTERS
from simulate.engine.calls import Call
from simulate.engine.state import State

_MOST = 2
"""The number of returns that a change of something else may cause, e.g. of PD's leader."""


@dataclass(slots=True)
class _Seen:
    """The reasons of one condition since the last event, the newest one last."""

    world: Hashable = None
    reasons: list[str] = field(default_factory=list)
    returns: int = 0


class Alternations:
    """Follows the conditions of the TidbCluster; of a DMCluster, the state of the world does not show who leads.

    `faults` is a value that changes when a fault begins or ends.
    """

    def __init__(self, state: State, faults: Callable[[], Hashable]) -> None:
        self._state, self._faults = state, faults
        self._seen: dict[tuple[str, str, str], _Seen] = {}

    def wrote(self, call: Call) -> Iterator[str]:
        """The violations that an accepted write of a status shows."""
        target = call.target
        if target.resource != str(TIDB_CLUSTERS) or target.subresource != "status":
            return
        if (target.namespace, target.name) != (self._state.namespace, self._state.name):
            return
        tree = self._state.get(TIDB_CLUSTERS, target.name)
        for where, condition in _conditions((tree or {}).get("status") or {}):
            key = (target.resource, target.name, f"{where}{condition.get('type')}")
            seen, reason = self._seen.setdefault(key, _Seen()), f"{condition.get('status')} {condition.get('reason')}"
            if seen.reasons and seen.reasons[-1] == reason:
                continue
            if (world := self._world(tree or {})) != seen.world:
                seen.world, seen.reasons, seen.returns = world, [], 0
            seen.returns += reason in seen.reasons
            seen.reasons.append(reason)
            if seen.returns > _MOST:
                yield f"{key[2]} of {target.name} alternates between {', '.join(sorted(set(seen.reasons)))}"

    def _world(self, cluster: Json) -> Hashable:
        """A value that changes with whatever the operator does not write."""
        state = self._state
        known = state.look()
        servers = known[1:] if isinstance(known, tuple) else ()
        parts = [_part(each) for resource in (PODS, PERSISTENT_VOLUME_CLAIMS) for each in state.all(resource)]
        meta = [cluster["metadata"].get(each) for each in ("generation", "annotations", "labels")]
        return servers, self._faults(), msgspec.json.encode((meta, parts))


def _conditions(status: Json) -> Iterator[tuple[str, Json]]:
    """The conditions of the whole and of each component, after the path to them."""
    parts = {"": status} | {f"{name}.": each for name, each in status.items() if isinstance(each, dict)}
    for where, part in parts.items():
        for condition in part.get("conditions") or ():
            if isinstance(condition, dict):
                yield where, condition


def _part(tree: Json) -> list[object]:
    meta = tree["metadata"]
    return [meta["name"], meta["uid"], meta.get("deletionTimestamp"), tree.get("status")]
