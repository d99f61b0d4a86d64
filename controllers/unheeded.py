"""What the user has written in vain, as conditions of a cluster, each with an event when it changes.

True     the message names each of it, with what holds and what to write instead
False    there was something, and it has been corrected
"""

from collections.abc import Callable, Mapping, Sequence

from apis.cluster import SETTINGS_OVERRIDDEN, Cluster
from apis.problem import Problem
from controllers.conditions import ConditionValue
from kube.events import WARNING
from member.context import ClusterContext
from member.fields.settings import overridden
from member.outcome import DONE
from ports.foreign_text import printable

_JUDGES: Mapping[str, Callable[[Cluster], Sequence[Problem]]] = {SETTINGS_OVERRIDDEN: overridden}
"""What decides, by the type of the condition, which is its reason as well."""
_MOST = 10
"""So many problems are in a message, which must stay readable."""


def conditions(ctx: ClusterContext) -> Mapping[str, ConditionValue]:
    """The conditions, by type; none of what was never written."""
    found: dict[str, ConditionValue] = {}
    for kind, problems in _problems(ctx).items():
        stored = next((each for each in ctx.tc.status.conditions if each.type == kind), None)
        if not problems:
            found |= {kind: (False, DONE, "what was named here has been corrected")} if stored else {}
            continue
        message = "; ".join(map(str, problems[:_MOST]))
        message += f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
        message = printable(message, lines=True)
        if stored is None or stored.status != "True" or stored.message != message:
            ctx.deps.recorder.event(ctx.owner, WARNING, kind, message)
        found[kind] = (True, kind, message)
    return found


def _problems(ctx: ClusterContext) -> Mapping[str, Sequence[Problem]]:
    """What each judge finds; all of them look at the spec alone, so they look once at each."""
    meta = ctx.owner.metadata
    spec = meta.uid, meta.generation, ctx.tc.metadata.annotations, ctx.removed
    return ctx.memory.unheeded.of(spec, ctx.deps.clock, lambda: {kind: each(ctx.tc) for kind, each in _JUDGES.items()})
