"""The desired ConfigMap and StatefulSet of a component, and the operator's own changes that wait (design.md 3.5).

Foreign edits in the StatefulSet are repaired before any other decision. The operator restores what it wrote last,
whatever the spec says by now, and even if the component may not be rolled: Kubernetes must not continue to restart pods
for a change that the cluster's spec does not contain. Pods that already run a foreign template are outdated afterwards.
As they are below the partition, they are restarted one by one as in any roll.
"""

from dataclasses import replace

from apis.accessor import Component
from kube.actions import Emit
from kube.apply import ForeignOwner
from kube.events import WARNING
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS
from member.apply import stateful_set
from member.apply.foreign_edits import ForeignEdit
from member.apply.last_applied import as_recorded, template_change, with_running_template, with_template_of
from member.apply.stateful_set import Replicas, UpdateStrategy, with_replicas, with_strategy
from member.apply.writes import apply, require_own
from member.context import ClusterContext
from member.labels import base_labels, object_meta
from member.lifecycle import own_changes
from member.lifecycle.own_changes import OwnChange, own_change
from member.lifecycle.workload import Workload
from member.naming import member_name
from member.objects.config_map import (
    ROLLING_UPDATE,
    ConfigMapChoice,
    choose_config_map,
    config_map,
    config_map_of_others,
    in_use_config_map_name,
    is_as_written,
    with_options,
)
from member.objects.stateful_set import ordinals_of
from member.outcome import Waiting


def wanted_state(
    ctx: ClusterContext, member: Workload, spec: Component, body: Json | None
) -> tuple[ConfigMapChoice, Json, OwnChange | None]:
    """The desired configuration and StatefulSet, and the operator's own change that waits, if there is one."""
    name, config = in_use = _in_use(ctx, member, body)
    choice = _choose(ctx, member, spec, in_use, body)
    desired = member.designed_stateful_set(ctx, choice.name)
    if body is None:
        return choice, desired, None
    desired = with_running_template(body, desired, lambda: own_changes.stateful_set_before(ctx, member, body))
    data: dict[str, str] = ctx.tree(config).get("data") or {} if config else {}
    difference = template_change(body, desired)
    if difference is None and (config is None or choice.data == data):
        # recreating a missing ConfigMap restarts no pod
        return choice, desired, None
    waiting = own_change(ctx, member, body, desired, difference, data=data)
    if waiting is None:
        return choice, desired, None
    # undo manual edits in the ConfigMap in use: without them, nothing may be left that waits
    as_written = is_as_written(name, data)
    if as_written or difference:
        own_changes.tell(ctx, member, waiting)
    kept = replace(choice, name=name or choice.name, data=data if as_written else choice.data, same_config=True)
    return kept, with_template_of(body, desired), waiting if as_written or difference else None


def _in_use(ctx: ClusterContext, member: Workload, body: Json | None) -> tuple[str, Object | None]:
    """The name of the ConfigMap that the pods use, and the ConfigMap if it exists."""
    name = in_use_config_map_name(ctx.tc, member.name, body)
    return name, _config_map(ctx, name) if name else None


def _choose(
    ctx: ClusterContext, member: Workload, spec: Component, in_use: tuple[str, Object | None], body: Json | None
) -> ConfigMapChoice:
    name, existing = in_use
    if spec.config is None and existing and _is_of_others(ctx, member.name, existing):
        return config_map_of_others(name, existing.decode())
    return choose_config_map(
        member_name(ctx.tc, member.name),
        member.designed_content(ctx),
        spec.config_update_strategy,
        name,
        with_options(ctx.tree(existing), lambda: own_changes.content_before(ctx, member, body)) if existing else None,
    )


def _config_map(ctx: ClusterContext, name: str) -> Object | None:
    return ctx.listers.config_maps.get(ctx.namespace, name) or ctx.deps.client.find(CONFIG_MAPS, name, ctx.namespace)


def _is_of_others(ctx: ClusterContext, component: str, config_map: Object) -> bool:
    """True if Helm or a user keeps the ConfigMap; False if it was left by a deleted cluster of the same name."""
    try:
        require_own(ctx, CONFIG_MAPS, component, config_map)
    except ForeignOwner as error:
        return not error.is_former
    return False


async def write_config_map(ctx: ClusterContext, member: Workload, choice: ConfigMapChoice) -> None:
    """Write the chosen ConfigMap, unless another client keeps it. Raises like `member.apply.writes.apply`."""
    if choice.is_of_others or not choice.data:
        # a component with its script in the command may have no configuration
        return
    desired = config_map(ctx.tc, member.name, choice)
    cached = ctx.listers.config_maps.get(ctx.namespace, choice.name)
    data = ctx.tree(cached).get("data") or {} if cached else {}
    await apply(ctx, CONFIG_MAPS, desired, cached, applied_before={"data": data})


async def remake_config_map(ctx: ClusterContext, member: Workload, spec: Component, body: Json) -> None:
    """Recreate the ConfigMap that the pods use, if the last valid spec leads to the same content."""
    name, existing = _in_use(ctx, member, body)
    if not name or existing is not None:
        return
    choice = _choose(ctx, member, spec, (name, None), body)
    if spec.config_update_strategy != ROLLING_UPDATE or is_as_written(name, choice.data):
        await write_config_map(ctx, member, choice)


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
        return UpdateStrategy.above_all(ordinals_of(body).bound)
    return UpdateStrategy.unchanged(recorded if "updateStrategy" in edit.fields else body)
