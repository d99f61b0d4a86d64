"""Repair of foreign edits in a StatefulSet, before any other decision about it.

The operator restores what it wrote last, whatever the spec says by now, and even if the component may not be rolled:
Kubernetes must not continue to restart pods for a change that the cluster's spec does not contain. Pods that already
run a foreign template are outdated afterwards. As they are below the partition, they are restarted one by one as in any
roll.
"""

from kube.actions import Emit
from kube.events import WARNING
from kube.objects import Json, Object
from member.apply import stateful_set
from member.apply.foreign_edits import ForeignEdit
from member.apply.last_applied import as_recorded
from member.apply.stateful_set import Replicas, UpdateStrategy, with_replicas, with_strategy
from member.context import ClusterContext
from member.labels import base_labels, object_meta
from member.naming import member_name
from member.outcome import Waiting

FOREIGN_EDIT = "ForeignEdit"


async def restore(ctx: ClusterContext, component: str, live: Object) -> Waiting | None:
    """Undo a foreign edit in one of the operator's StatefulSets; None if there is none.

    Raises ApiError, TransportError.
    """
    edit = stateful_set.edit_by_others(ctx, live)
    if edit is None:
        return None
    body = live.decode()
    metadata = object_meta(ctx.tc, member_name(ctx.tc, component), base_labels(ctx.tc, component))
    desired = as_recorded(body, metadata)
    replicas, strategy = Replicas.unchanged(body), _strategy(edit, body, desired)
    desired = with_strategy(with_replicas(desired, replicas), strategy)
    what = f"StatefulSet {live.metadata.name} was changed by another hand: {edit.change}"
    await stateful_set.update(ctx, desired, live, replicas=replicas, strategy=strategy, rewritten=edit.fields)
    await Emit(ctx.owner, WARNING, FOREIGN_EDIT, f"{what}; restored, as only the {ctx.tc.kind} is edited")
    return Waiting(FOREIGN_EDIT, f"{what}; restored")


def _strategy(edit: ForeignEdit, body: Json, recorded: Json) -> UpdateStrategy:
    """A strategy that restarts no pod: the recorded one, or above all pods if some may run a foreign template."""
    if edit.hits_pods and "rollingUpdate" in recorded["spec"]["updateStrategy"]:
        return UpdateStrategy.above_all(body["spec"]["replicas"])
    return UpdateStrategy.unchanged(recorded if "updateStrategy" in edit.fields else body)
