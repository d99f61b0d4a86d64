"""Conditions that list fields of the spec without effect, each with an event when it changes.

True     the message names each field, the value that applies, and what to write instead
False    the user has corrected all of them
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from math import inf
from typing import Any

from apis import graceful_stop, ready_endpoints
from apis.cluster import FIELDS_IGNORED, SETTINGS_OVERRIDDEN, Cluster
from apis.overlays import unknown_in_overlays
from apis.problem import Problem
from controllers.conditions import CORRECTED, ConditionValue, listed, with_condition
from controllers.simple_kind import Reconcile
from kube.events import WARNING, EventRecorder
from kube.objects import Json, Object, condition_of, stored_condition
from member.context import ClusterContext
from member.fields.ignored import ignored, ignored_by
from member.fields.settings import overridden
from member.outcome import Refused
from ports.foreign_text import printable


def conditions(ctx: ClusterContext) -> Mapping[str, ConditionValue]:
    """The conditions of a cluster, by type. A condition is absent if its list was always empty.

    A refused spec leaves the conditions unchanged: code that builds objects may fail on its values.
    """
    if isinstance(ctx.outcomes.get("spec"), Refused):
        return {}
    found: dict[str, ConditionValue] = {}
    for kind, problems in _problems(ctx).items():
        found |= reported(ctx.owner, ctx.deps.recorder, kind, problems)
    return found


def of_kind(ctx: Reconcile[Any]) -> Mapping[str, ConditionValue]:
    """The condition of an object that is not a cluster: it lists the fields without effect."""
    problems = ignored_by(ctx.owned.resource.kind, ctx.owner.decode()["spec"])
    return reported(ctx.owner, ctx.owned.runtime.recorder, FIELDS_IGNORED, problems)


def reported(
    owner: Object, recorder: EventRecorder, kind: str, problems: Sequence[Problem]
) -> Mapping[str, ConditionValue]:
    """The condition of a type that lists `problems`, with an event if they are new; empty if there never were any."""
    if not problems:
        return {kind: CORRECTED} if stored_condition(owner, kind) else {}
    conditions = (owner.decode().get("status") or {}).get("conditions") or ()
    return {kind: _named(owner, conditions, recorder, kind, problems)}


def with_ignored_fields(
    owner: Object, conditions: Sequence[Json], now: datetime, recorder: EventRecorder
) -> Sequence[Json]:
    """The conditions of an object whose work Jobs do, with its fields without effect; an event if they are new.

    `conditions` are those last written: the CRDs of v1.6 drop the conditions of some kinds.
    """
    problems = ignored_by(owner.kind, owner.decode()["spec"])
    if not problems and not condition_of(conditions, FIELDS_IGNORED):
        return conditions
    value = _named(owner, conditions, recorder, FIELDS_IGNORED, problems) if problems else CORRECTED
    return with_condition(conditions, FIELDS_IGNORED, value, now)


def _named(
    owner: Object, conditions: Sequence[Json], recorder: EventRecorder, kind: str, problems: Sequence[Problem]
) -> ConditionValue:
    """The value of a condition that lists `problems`, with an event if the last written one does not."""
    stored = condition_of(conditions, kind)
    message = message_of(problems)
    if stored.get("status") != "True" or stored.get("message") != message:
        recorder.event(owner, WARNING, kind, message)
    return True, kind, message


def _problems(ctx: ClusterContext) -> Mapping[str, Sequence[Problem]]:
    """The problems by type of condition. They depend on the spec alone, so they are computed once per spec."""
    meta = ctx.owner.metadata
    spec = meta.uid, meta.generation, ctx.tc.metadata.annotations, ctx.removed
    return ctx.memory.unheeded.of(spec, ctx.deps.clock, partial(_judged, ctx), lasts=inf)


def _judged(ctx: ClusterContext) -> Mapping[str, Sequence[Problem]]:
    return of_cluster(ctx.tc, ctx.owner.decode()["spec"])


def of_cluster(tc: Cluster, spec: Json) -> Mapping[str, Sequence[Problem]]:
    """What has no effect in a cluster's `spec`, by type and reason of the condition; `tc` has its defaults."""
    fields = [*ignored(tc, spec), *unknown_in_overlays(tc), *graceful_stop.without_effect(tc)]
    fields += ready_endpoints.without_effect(tc)
    return {SETTINGS_OVERRIDDEN: overridden(tc), FIELDS_IGNORED: fields}


def message_of(problems: Sequence[Problem]) -> str:
    """The message of a condition that lists `problems`."""
    return printable(listed(problems), lines=True)
