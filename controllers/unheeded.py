"""Conditions that list fields of the spec without effect, each with an event when it changes.

True     the message names each field, the value that applies, and what to write instead
False    the user has corrected all of them
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

from apis.cluster import FIELDS_IGNORED, SETTINGS_OVERRIDDEN
from apis.problem import Problem
from controllers.conditions import CORRECTED, ConditionValue, listed
from controllers.simple_kind import Reconcile
from kube.events import WARNING, EventRecorder
from kube.objects import Object, condition_of, stored_condition
from member.context import ClusterContext
from member.fields.ignored import ignored, ignored_by
from member.fields.settings import overridden
from ports.foreign_text import printable


def conditions(ctx: ClusterContext) -> Mapping[str, ConditionValue]:
    """The conditions of a cluster, by type. A condition is absent if its list was always empty."""
    found: dict[str, ConditionValue] = {}
    for kind, problems in _problems(ctx).items():
        found |= reported(ctx.owner, ctx.deps.recorder, kind, problems)
    return found


def of_kind(ctx: Reconcile[Any]) -> Mapping[str, ConditionValue]:
    """The condition of an object that is not a cluster: it lists the fields without effect."""
    found = ignored_by(ctx.owned.resource.kind, ctx.owner.decode()["spec"])
    return reported(ctx.owner, ctx.owned.runtime.recorder, FIELDS_IGNORED, found)


def reported(
    owner: Object, recorder: EventRecorder, kind: str, problems: Sequence[Problem]
) -> Mapping[str, ConditionValue]:
    """The condition of a type that lists `problems`, with an event if they are new; empty if there never were any."""
    if not problems:
        return {kind: CORRECTED} if stored_condition(owner, kind) else {}
    message = printable(listed(problems), lines=True)
    stored = condition_of((owner.decode().get("status") or {}).get("conditions") or (), kind)
    if stored.get("status") != "True" or stored.get("message") != message:
        recorder.event(owner, WARNING, kind, message)
    return {kind: (True, kind, message)}


def _problems(ctx: ClusterContext) -> Mapping[str, Sequence[Problem]]:
    """The problems by type of condition. They depend on the spec alone, so they are computed once per spec."""
    meta = ctx.owner.metadata
    spec = meta.uid, meta.generation, ctx.tc.metadata.annotations, ctx.removed
    return ctx.memory.unheeded.of(spec, ctx.deps.clock, partial(_judged, ctx), lasts=inf)


def _judged(ctx: ClusterContext) -> Mapping[str, Sequence[Problem]]:
    """The problems by type of condition, which is its reason as well."""
    return {
        SETTINGS_OVERRIDDEN: overridden(ctx.tc),
        FIELDS_IGNORED: ignored(ctx.tc, ctx.owner.decode()["spec"]),
    }
