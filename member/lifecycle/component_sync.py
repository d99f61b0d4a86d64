"""The reconcile of every component that runs in a StatefulSet (lifecycle.md 6).

suspend? → foreign edits → gate → Services → StatefulSet: configuration, size, roll, volumes → failover → does it serve?

Each step is a module of its own and works for all components; the verbs of `Workload` hold the differences. Size, pod
template and update strategy are decided in this order, from the state that this reconcile has observed, and are written
in one patch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from structlog.contextvars import bound_contextvars

from apis import predicates
from apis.accessor import Component, find
from apis.components import ComponentType, component_type, component_types, with_needed
from kube.apply import OwnerGone
from kube.deletion import Destroyer
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS, Resource
from kube.server_version import server_version
from member.actions import Delete
from member.apply import stateful_set
from member.apply.claim_templates import data_on, mounts_differ, names, unwanted_mounts, with_sizes_of
from member.apply.last_applied import (
    compare_stateful_set,
    fixed_field_change,
    missing_volumes,
    template_change,
    with_fixed_fields,
    with_template_of,
)
from member.apply.stateful_set import with_size, with_strategy
from member.apply.writes import apply_service, require_own
from member.context import ClusterContext, Held
from member.evidence import pods_live
from member.labels import WRITTEN_FOR, with_annotation
from member.lifecycle import own_changes
from member.lifecycle.creation import (
    CONVERTING,
    RECREATING,
    claim_of_others,
    delete_keeping_pods,
    is_moving,
    keeps_volumes,
    moved,
    previous_stateful_set,
    read_claims,
    recreate_for_lost,
    recreate_unstarted,
    recreated,
)
from member.lifecycle.refused_writes import attempted, first_refusal, kept, updated, with_refusal
from member.lifecycle.roll import PodDeletion, give_back, next_roll
from member.lifecycle.roll_view import RollView
from member.lifecycle.rolling import BEGIN, call_hook, tell_restart
from member.lifecycle.scaling import next_size, warn_of_slots
from member.lifecycle.serving import requeue, serving_state
from member.lifecycle.suspend import Postponed, paused, suspension
from member.lifecycle.wanted_state import remake_config_map, restore, wanted_state, write_config_map
from member.lifecycle.workload import Workload
from member.naming import member_name
from member.objects.config_map import (
    ConfigMapChoice,
    in_use_config_map_name,
)
from member.observed.claims import lacks_claims
from member.observed.nodes import kept_by_lost_nodes, missing_behind_lost_nodes
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.observed.referenced_cluster import not_allowed, unverified_pd, without_pd
from member.observed.status import SUSPEND, UPGRADE, image_of, set_phase
from member.outcome import NOT_OURS, Done, Failed, NotDone, Outcome, Refused, Waiting, in_time_for
from member.ownership import not_understood
from member.polling import next_poll

FIXED_FIELD = "FixedField"
REMOVED = "ComponentRemoved"

_LOOK_AGAIN = 10.0
"""Seconds until unusable Secrets are read again."""


def observe(ctx: ClusterContext, member: Workload) -> Outcome:
    """Update the status of one component; without a spec and a StatefulSet it has no members. Raises like `act`."""
    row = component_type(member.name)
    if row.slot.spec(ctx.tc.spec) is not None:
        return member.observe(ctx)
    status = row.status(ctx.tc.status)
    if status is not None and status.stateful_set and _is_gone(ctx, member.name):
        status.forget_members()
    return member.observe_elsewhere(ctx)


def _is_gone(ctx: ClusterContext, component: str) -> bool:
    """True if a component without a spec has no StatefulSet, or one with 0 replicas; reads it live."""
    live = _unseen(ctx, STATEFUL_SETS, member_name(ctx.tc, component))
    return live is None or not ctx.tree(live)["spec"].get("replicas", 1)


async def act(ctx: ClusterContext, member: Workload) -> Outcome:
    """Bring one component a step closer to its spec, then run its housekeeping.

    Raises OwnerGone, ForeignOwner, ApiError, TransportError, DataPlaneError.
    """
    spec = find(ctx.tc, member.name)
    if spec is None:
        return Done("not part of this cluster")
    if member.name in ctx.removed and ctx.held is Held.NO:
        return _removed(ctx, spec)
    if (why := member.unused(ctx.tc)) and ctx.stateful_set(member.name) is None:
        return Done(why)
    outcome = await _act_and_report(ctx, member, spec)
    if ctx.tc.spec.paused:
        return outcome
    other = await member.housekeeping(ctx)
    if other is None:
        return outcome
    return in_time_for(other, outcome) if isinstance(outcome, Done) else in_time_for(outcome, other)


async def _act_and_report(ctx: ClusterContext, member: Workload, spec: Component) -> Outcome:
    """Call `_act`; if it fails, assume that this component would have rolled, so that later ones wait (7.2)."""
    try:
        return await _act(ctx, member, spec)
    except (*NOT_OURS, OwnerGone):
        raise
    except Exception:
        if ctx.stateful_set(member.name):
            ctx.rolls_to_come.add(member.name)
        raise


def _removed(ctx: ClusterContext, spec: Component) -> Refused:
    """Refuse to touch a component that was removed from the spec; it keeps running, as in v1.6 (objects.md 1.1)."""
    what = f"{spec.field} was removed, but StatefulSet {member_name(ctx.tc, spec.name)} still has replicas"
    meanwhile = "its pods are left as they are, and no pod of the cluster is restarted for a change of the spec"
    return Refused(REMOVED, f"{what}; {meanwhile}; restore it, and scale it in to 0 replicas before removing it")


def _lacks_components(ctx: ClusterContext) -> bool:
    """True if the spec lacks a component that runs, or that may run unseen by the cache (F1)."""
    if ctx.removed:
        return True
    tc = ctx.tc
    absent = [row for row in component_types(tc.kind) if row.slot.spec(tc.spec) is None]
    return bool([row for row in absent if (status := row.status(tc.status)) and status.stateful_set])


async def _act(ctx: ClusterContext, member: Workload, spec: Component) -> Outcome:
    if ctx.held is Held.OBSERVING:
        return _observed(ctx, member)
    if ctx.tc.spec.paused and ctx.held is Held.NO:
        return paused(ctx.tc.metadata.name)
    if moving := await moved(ctx, member.name):
        return moving
    suspended = await suspension(ctx, member.name)
    if isinstance(suspended, Postponed):
        return suspended.merged_with(not_allowed(ctx) or await _maintain(ctx, member, spec))
    return suspended or not_allowed(ctx) or await _maintain(ctx, member, spec)


async def _maintain(ctx: ClusterContext, member: Workload, spec: Component) -> Outcome:
    """Reconcile a component that is not being suspended."""
    # check the owner first: the operator writes nothing beside another controller's StatefulSet
    known, unrestored = _ours(ctx, member.name, ctx.stateful_set(member.name)), None
    if known and not known.metadata.deletion_timestamp:
        restored, unrestored = await attempted(ctx, f"edit of {member.name}", partial(restore, ctx, member.name, known))
        if restored:
            return restored
    if waiting := await _gate(ctx, member):
        return waiting
    live = known or _ours(ctx, member.name, _uncached_stateful_set(ctx, member.name))
    if live is None and (unwanted := await moved(ctx, member.name, asks=True) or unverified_pd(ctx)):
        return unwanted
    services = [partial(apply_service, ctx, service) for service in member.designed_services(ctx)]
    refused = await first_refusal(ctx, member.name, services)
    if live is not None:
        return with_refusal(refused, await _brought_up_to_date(ctx, member, spec, live, unrestored))
    if refused and not _has_run(ctx, member.name):
        return refused
    return with_refusal(refused, await _create(ctx, member, spec))


def _has_run(ctx: ClusterContext, component: str) -> bool:
    """True if the status or a pod shows that the component has had a StatefulSet."""
    return predicates.tells_of_stateful_set(ctx.tc, component) or bool(pods_of(ctx, component))


async def _brought_up_to_date(
    ctx: ClusterContext, member: Workload, spec: Component, live: Object, unrestored: NotDone | None = None
) -> Outcome:
    """Reconcile an existing StatefulSet; `unrestored` says why foreign edits in it could not be undone."""
    if is_moving(live):
        return Waiting(CONVERTING, f"waiting for the operator's cache to show StatefulSet {live.metadata.name}", 1.0)
    if live.metadata.deletion_timestamp:
        what = f"StatefulSet {live.metadata.name} is being deleted; it will be recreated afterwards"
        return kept_by_lost_nodes(ctx, member.name, what) or Waiting(RECREATING, what, next_poll(ctx, member.name))
    if ctx.held is Held.REMAKING:
        await remake_config_map(ctx, member, spec, live.decode())
        # the pod that a roll had prepared before the spec became invalid must get its leaders back
        outcome = await give_back(ctx, member.name, member.rolling) or serving_state(ctx, member)
    else:
        outcome = await _updated(ctx, member, spec, live, unrestored)
    if isinstance(outcome, Done):
        return outcome
    outcome = in_time_for(outcome, Done(retry_after=await requeue(ctx, member.name, live)))
    if isinstance(outcome, Refused) and _outage(ctx, member.name):
        return outcome
    # report the cause that all these waits share
    return _cause(ctx, member) or _with_what_is_unknown(ctx, member, outcome)


async def _updated(
    ctx: ClusterContext, member: Workload, spec: Component, live: Object, unrestored: NotDone | None
) -> Outcome:
    """Update, fail over, check the service; if the API server refuses the update, maintain the pods as they run."""
    status = predicates.status_of(ctx.tc, member.name)
    phase = status.phase if status else ""

    async def as_it_runs() -> Outcome:
        # the refused update may have set the phase Upgrade
        set_phase(ctx, member.name, phase)
        return await _update(ctx, member, spec, live, as_it_runs=True)

    refused = unrestored
    if unrestored:
        outcome = await kept(ctx, member.name, as_it_runs)
    else:
        outcome, refused = await updated(ctx, member.name, lambda: _update(ctx, member, spec, live), as_it_runs)
    return with_refusal(refused, _first_not_done(ctx, member, outcome, await member.failover(ctx)))


def _cause(ctx: ClusterContext, member: Workload) -> NotDone | None:
    outcome = not_understood(ctx.observations) or without_pd(ctx)
    return outcome or _outage(ctx, member.name) or missing_behind_lost_nodes(ctx, member.name)


def _outage(ctx: ClusterContext, component: str) -> Waiting | None:
    """The wait for a component that this one needs and that is out of service."""
    if not ctx.unavailable:
        return None
    *needed, _ = with_needed(component_type(component))
    row = next((each for each in needed if each.name in ctx.unavailable), None)
    if row is None:
        return None
    # no retry time here: the outage's own verdict sets it
    return Waiting(f"WaitingFor{row.word}", ctx.unavailable[row.name].message)


def _with_what_is_unknown(ctx: ClusterContext, member: Workload, outcome: Outcome) -> Outcome:
    """Add to a wait why the component could not be observed; that may be what the wait is for."""
    observed = ctx.observations.get(member.name, Done())
    if isinstance(observed, Done) or not isinstance(outcome, Waiting) or observed.message in outcome.message:
        return outcome
    return replace(outcome, message=f"{outcome.message}; {observed.message}")


def _observed(ctx: ClusterContext, member: Workload) -> Outcome:
    """Report the state of a component whose valid spec is unknown: only what runs can be judged."""
    if ctx.stateful_set(member.name):
        return serving_state(ctx, member)
    name, status = member_name(ctx.tc, member.name), predicates.status_of(ctx.tc, member.name)
    if status is None or not status.stateful_set:
        return Done(f"StatefulSet {name} is made once the spec is valid")
    what = f"StatefulSet {name} is gone, and this process has not seen what it was made of"
    return Refused("InvalidSpec", f"{what}; the operator recreates it once the spec is valid")


def _ours(ctx: ClusterContext, component: str, live: Object | None) -> Object | None:
    """`live`, after checking its owner. Raises ForeignOwner if it is another controller's."""
    if live is not None:
        require_own(ctx, STATEFUL_SETS, component, live)
    return live


async def _gate(ctx: ClusterContext, member: Workload) -> Waiting | Refused | None:
    """The wait for what a component needs to start; None for running pods that only lack their StatefulSet."""
    waiting = _waits_for(ctx, component_type(member.name)) or await member.gate(ctx)
    if waiting is None or ctx.stateful_set(member.name) or not _any_stays(pods_of(ctx, member.name)):
        return waiting
    if _unseen(ctx, STATEFUL_SETS, member_name(ctx.tc, member.name)):
        return waiting
    # the cache may still show pods that have gone, e.g. after a suspension
    return None if _any_stays(pods_live(ctx, member.name).pods) else waiting


def _any_stays(pods: Iterable[Object]) -> bool:
    return any(not pod.metadata.deletion_timestamp for pod in pods)


def _waits_for(ctx: ClusterContext, own: ComponentType) -> Waiting | None:
    """The wait for a component that must serve first (3.1); if that one itself waits for another, names the latter."""
    first = next((each for each in map(component_type, own.starts_after) if _lacks(ctx, each)), None)
    if first is None:
        return None
    if waiting := _outage(ctx, own.name):
        return waiting
    row = _cause_of(ctx, first)
    is_suspended = predicates.in_phase(ctx.tc, row.name, SUSPEND)
    what = f"{row.unavailable}; {row.title} is suspended" if is_suspended else row.unavailable
    return Waiting(f"WaitingFor{row.word}", what, next_poll(ctx, own.name))


def _cause_of(ctx: ClusterContext, row: ComponentType) -> ComponentType:
    """The component that keeps `row` from serving, if `row` has a StatefulSet; else `row` itself."""
    if not predicates.tells_of_stateful_set(ctx.tc, row.name):
        return row
    return next(each for each in with_needed(row) if _lacks(ctx, each))


def _lacks(ctx: ClusterContext, row: ComponentType) -> bool:
    """True if other components wait for this one and it does not serve."""
    return bool(row.unavailable) and not predicates.is_available(ctx.tc, row.name)


def _first_not_done(ctx: ClusterContext, member: Workload, outcome: Outcome, failed_over: Outcome) -> Outcome:
    """The most important outcome: a refusal by the failover, the update's outcome, the failover's, the service."""
    reported = outcome
    # this outcome already schedules another reconcile
    is_scheduled = not isinstance(outcome, Done) and _is_looked_at_again(outcome)
    served = Done() if is_scheduled else serving_state(ctx, member)
    if isinstance(failed_over, Refused) or (isinstance(outcome, Done) and not isinstance(failed_over, Done)):
        reported = failed_over
    elif isinstance(outcome, Done):
        reported = served
    return in_time_for(reported, outcome, failed_over, served)


def _is_looked_at_again(outcome: NotDone) -> bool:
    return isinstance(outcome, Failed) or bool(outcome.retry_after)


def _uncached_stateful_set(ctx: ClusterContext, component: str) -> Object | None:
    """The StatefulSet if no cache shows it; read live only if the component has run or the name was seen before.

    In other cases `stateful_set.create` finds an existing one.
    """
    name, taken_names = member_name(ctx.tc, component), ctx.memory.taken_names
    if not _has_run(ctx, component) and not taken_names.last_seen(STATEFUL_SETS, name, ctx.deps.clock):
        return None
    live = _unseen(ctx, STATEFUL_SETS, name)
    if live is None:
        taken_names.forget(STATEFUL_SETS, name)
    return live


def _unseen(ctx: ClusterContext, resource: Resource, name: str) -> Object | None:
    """Read live an object that the cache lacks: treating it as absent would overwrite it (F1, F6)."""
    return ctx.deps.client.find(resource, name, ctx.namespace)


async def _create(ctx: ClusterContext, member: Workload, spec: Component) -> Outcome:
    mounts_claims = member.designed_stateful_set(ctx, "")["spec"].get("volumeClaimTemplates")
    claims = read_claims(ctx, member.name) if mounts_claims else ()
    previous = previous_stateful_set(ctx, member.name, claims)
    choice, wanted, _ = wanted_state(ctx, member, spec, previous.running)
    if previous.can_take_volumes_of(wanted) and previous.body and not _other_mounts(ctx, spec, previous.body, wanted):
        previous = replace(previous, takes_volumes=True)
    refused = claim_of_others(ctx, member.name, recreated(previous, wanted), claims)
    if refused := refused or _too_new_for_kubernetes(ctx, spec, wanted, previous.running):
        return refused
    running = previous.running
    noted = own_changes.remembered(running) if running else ""

    async def as_wanted() -> Outcome:
        await write_config_map(ctx, member, choice)
        note = noted if keeps_volumes(previous, wanted) else own_changes.note(ctx, member.name)
        return await _made(ctx, member, spec, recreated(previous, wanted), note)

    if running is None:
        return await as_wanted()

    async def as_it_ran() -> Outcome:
        return await _made(ctx, member, spec, recreated(previous, with_template_of(running, wanted)), noted)

    outcome, unwanted = await updated(ctx, member.name, as_wanted, as_it_ran)
    return with_refusal(unwanted, outcome)


async def _made(ctx: ClusterContext, member: Workload, spec: Component, desired: Json, note: str) -> Outcome:
    """Create a StatefulSet; `note` describes the cluster that its pod template was built for, empty if unknown."""
    desired = with_annotation(desired, WRITTEN_FOR, note) if note else desired
    await warn_of_slots(ctx, member.name, desired, None)
    if there := _ours(ctx, member.name, await stateful_set.create(ctx, desired)):
        return await _brought_up_to_date(ctx, member, spec, there)
    return Waiting("Creating", f"StatefulSet {desired['metadata']['name']} was created; waiting for its pods")


async def _update(
    ctx: ClusterContext, member: Workload, spec: Component, live: Object, *, as_it_runs: bool = False
) -> Outcome:
    """Write the differences in a StatefulSet and its ConfigMap; with `as_it_runs`, only those that restart no pod."""
    body = ctx.tree(live)
    choice, wanted, waiting = wanted_state(ctx, member, spec, body)
    ctx.memory.own_changes[member.name] = str(waiting or "")
    refused = await _not_as_wanted(ctx, member, spec, live, wanted=wanted, as_it_runs=as_it_runs)
    if refused is not None and refused.reason == RECREATING:
        return refused
    # keep the fields that cannot change; no running pod depends on the new values
    desired = with_fixed_fields(body, wanted)
    edited = as_it_runs and stateful_set.edit_by_others(ctx, live) is not None
    incomplete = as_it_runs or refused is not None or _lacks_components(ctx)
    if incomplete:
        # the template contains settings of other components: losing one would restart the pods, and so would its return
        desired = with_template_of(body, desired)
    else:
        await write_config_map(ctx, member, choice)
    changed = _changed(spec, body, desired, choice)
    await warn_of_slots(ctx, member.name, wanted, body)
    size = await next_size(ctx, member.name, member.scaling, body, desired)
    desired = with_size(desired, size.replicas)
    scaling = size.outcome is not None
    roll = await next_roll(
        ctx, member.name, member.rolling, body, desired, changed=changed, scaling=scaling, edited=edited
    )
    if changed and not roll.takes_template and not isinstance(roll.outcome, Refused):
        ctx.rolls_to_come.add(member.name)
    if not roll.takes_template or not changed:
        # a write without a real change would still make Kubernetes restart all pods
        desired = with_template_of(body, desired)
    elif changed:
        # components that are reconciled later in this reconcile must see this upgrade coming (7.2)
        set_phase(ctx, member.name, UPGRADE)
    desired = with_strategy(desired, roll.strategy)
    if not compare_stateful_set(body, desired).nothing or (waiting and waiting.is_read_otherwise):
        is_current = not incomplete and (roll.takes_template or not changed)
        note = own_changes.note(ctx, member.name) if is_current else own_changes.remembered(body)
        desired = with_annotation(desired, WRITTEN_FOR, note) if note else desired
        begun = changed if roll.takes_template else ""
        gone = {"why": "; ".join(evidence.what for evidence in size.replicas.gone)} if size.replicas.gone else {}
        with bound_contextvars(**_restarted(ctx, member, roll.restarts, begun), **gone):
            await stateful_set.update(
                ctx, desired, live, replicas=size.replicas, strategy=roll.strategy, keeps_edits=edited
            )
        if begun:
            ctx.memory.rolls.begin(member.name, begun)
        if roll.restarts:
            await tell_restart(ctx, member.name, roll.restarts, f"restarting pod {roll.restarts}")
    elif roll.delete:
        await _delete(ctx, member, roll.delete)
    elif not incomplete and not changed:
        await own_changes.note_on(ctx, member.name, live, body)
    return with_refusal(refused, size.outcome or roll.outcome or _fixed(body, wanted) or Done())


async def _not_as_wanted(
    ctx: ClusterContext, member: Workload, spec: Component, live: Object, *, wanted: Json, as_it_runs: bool
) -> NotDone | None:
    """Why the pods keep their template; None if they may get the wanted one.

    The reason is Recreating if the StatefulSet was deleted to be recreated. Raises ApiError, TransportError.
    """
    body = ctx.tree(live)
    remade = await recreate_unstarted(ctx, member.name, live, body, wanted)
    if remade := remade or await recreate_for_lost(ctx, member.name, live, body):
        return remade
    mounts = mounts_differ(body, wanted)
    refused = (_other_mounts(ctx, spec, body, wanted) if mounts else None) or _without_certificates(
        ctx, spec, body, wanted
    )
    refused = refused or _too_new_for_kubernetes(ctx, spec, wanted, body)
    if refused or as_it_runs or not mounts or _lacks_components(ctx):
        return refused
    return await _with_other_volumes(ctx, member, spec, live, wanted)


def refused_upgrade(ctx: ClusterContext, member: Workload) -> Refused | None:
    """The refusal of the version in the spec, known before any pod restarts for it (7.2); None if it can be run.

    A new version beside mounts that the StatefulSet cannot have would otherwise stop halfway, since the components that
    upgrade first would already run it.
    """
    return member.rolling.refused_upgrade(ctx) or _refused_volumes(ctx, member)


def _refused_volumes(ctx: ClusterContext, member: Workload) -> Refused | None:
    spec = find(ctx.tc, member.name)
    if spec is None or member.name in ctx.removed or (live := ctx.stateful_set(member.name)) is None:
        return None
    body = ctx.tree(live)
    if image_of(body, member.name) == spec.image:
        return None
    wanted = member.designed_stateful_set(ctx, in_use_config_map_name(ctx.tc, member.name, body))
    return _other_mounts(ctx, spec, body, wanted) or _without_class(ctx, spec, body, wanted)


def _other_mounts(ctx: ClusterContext, spec: Component, body: Json, wanted: Json) -> Refused | None:
    """Refuse mounts without a volume, and a spec without a volume that holds data (4.5, F23, R26).

    Kubernetes could not create pods with a missing volume, and pods would start without the data.
    """
    reason = f"FailedUpdate{spec.type.word}STS"
    if missing := [volume for volume in missing_volumes(body, wanted) if volume not in names(wanted)]:
        what = f"{spec.field} mounts {', '.join(missing)}, and there is no such volume"
        return Refused(reason, f"{what}; add it to storageVolumes or additionalVolumes, or remove the mount")
    unwanted = unwanted_mounts(body, wanted)
    if unwanted and (data := _data_on(ctx, spec, body, unwanted)):
        volumes = "storageClaims" if spec.type.storage_claims else "storageVolumes"
        lacking = f"{spec.field}.{volumes} lacks {', '.join(unwanted)}, which the pods mount"
        return Refused(reason, f"{lacking}, and {data}; restore it")
    return None


def _data_on(ctx: ClusterContext, spec: Component, body: Json, volumes: Sequence[str]) -> str:
    """Why volumes that pods mount may hold data, as the end of a sentence; empty if they hold none.

    Without its configuration, a component with data may have them anywhere.
    """
    if not spec.type.claims.hold_data:
        return ""
    if spec.type.storage_claims:
        return f"{spec.type.title} keeps data on each of them"
    name = in_use_config_map_name(ctx.tc, spec.name, body)
    config = ctx.listers.config_maps.get(ctx.namespace, name) or ctx.deps.client.find(CONFIG_MAPS, name, ctx.namespace)
    if config is None:
        return f"ConfigMap {name}, which shows what is on it, does not exist"
    texts: Json = config.decode().get("data") or {}
    return data_on(body, volumes, spec.type.data_volume, texts.values())


async def _with_other_volumes(
    ctx: ClusterContext, member: Workload, spec: Component, live: Object, wanted: Json
) -> NotDone:
    """Recreate a StatefulSet with other volumes around its pods, once a roll may begin; until then, wait.

    While a pod will lack a volume, all must be Ready: Kubernetes does not recreate a pod above it. If none will, e.g.
    because the user takes a volume back with which the first pod does not start, there is no reason to wait.
    """
    body = ctx.tree(live)
    view = RollView(ctx, member.name, member.rolling, body, scaling=False, everything_changed=True)
    unready = next((pod.name for pod in view.rolling_pods(view.cached) if not pod.ready), "")
    will_lack = any(lacks_claims(wanted, pod) for pod in view.cached)
    ctx.rolls_to_come.add(member.name)
    if refused := ctx.refused_upgrades.get(member.name) or _without_class(ctx, spec, body, wanted):
        return refused
    if (will_lack or not unready) and (blocked := view.blocked() or view.refused_elsewhere(wanted)):
        return blocked
    if will_lack and unready:
        what = f"waiting until pod {unready} is Ready before recreating StatefulSet {live.metadata.name}"
        return Waiting("RollingUpdate", f"{what} with other volumes", next_poll(ctx, member.name))
    if unprepared := await call_hook(ctx, member.name, BEGIN, member.rolling.begin(ctx, body, wanted)):
        return unprepared
    return await delete_keeping_pods(ctx, member.name, live)


def _without_class(ctx: ClusterContext, spec: Component, body: Json, wanted: Json) -> Refused | None:
    """The refusal of a new volume whose storage class does not exist: the first pod with it would not start."""
    classes, there = ctx.listers.storage_classes, names(body)
    for each in wanted["spec"].get("volumeClaimTemplates") or () if classes is not None else ():
        name, storage_class = each["metadata"]["name"], each["spec"].get("storageClassName")
        if storage_class and name not in there and classes is not None and classes.get("", storage_class) is None:
            what = f"{spec.field} has a new volume {name} of storage class {storage_class}, which does not exist"
            return Refused(f"FailedUpdate{spec.type.word}STS", f"{what}; create it, or name another one", _LOOK_AGAIN)
    return None


def _without_certificates(ctx: ClusterContext, spec: Component, body: Json, wanted: Json) -> Refused | None:
    """Refuse a new template while TLS Secrets are unusable: the first restarted pod would not start (9.1)."""
    if not ctx.missing_certificates or template_change(body, wanted) is None:
        return None
    what = f"no pod of {spec.type.title} is restarted to change TLS: {ctx.missing_certificates}"
    return Refused("BadCertificate", what, _LOOK_AGAIN)


_NATIVE_SINCE = (1, 29)
"""The Kubernetes version that starts native sidecars; an older one drops the field and waits for their end (TAIL-5)."""


def _too_new_for_kubernetes(ctx: ClusterContext, spec: Component, wanted: Json, body: Json | None) -> Refused | None:
    """Refuse native sidecars that are new in a template and that no pod would get past. Raises ApiError, …"""
    new = _native_sidecars(wanted) - (_native_sidecars(body) if body else set())
    if not new or (version := server_version(ctx.deps.client)) >= _NATIVE_SINCE:
        return None
    needed, found = (".".join(map(str, each)) for each in (_NATIVE_SINCE, version))
    what = f"{spec.field} has native sidecars ({', '.join(sorted(new))}), which need Kubernetes {needed}"
    return Refused("KubernetesTooOld", f"{what}, and this is {found}; unset useSidecar, or restartPolicy there")


def _native_sidecars(stateful_set: Json) -> set[str]:
    found = stateful_set["spec"]["template"]["spec"].get("initContainers") or ()
    return {each["name"] for each in found if each.get("restartPolicy") == "Always"}


def _changed(spec: Component, body: Json, desired: Json, choice: ConfigMapChoice) -> str:
    """The user's change that affects the pods, for messages; empty if there is none."""
    change = template_change(body, desired)
    if change is None:
        return ""
    used, wanted = (in_use_config_map_name(spec.tc, spec.name, each) for each in (body, desired))
    if used == wanted:
        return str(change)
    if not (used and wanted):
        return f"{spec.config_field}: there was no configuration" if wanted else f"{spec.config_field} was removed"
    return f"{spec.field if choice.same_config else spec.config_field}: {choice.because}"


def _restarted(ctx: ClusterContext, member: Workload, pod: str, begun: str = "") -> dict[str, str]:
    """The log fields for a write that restarts `pod`: pod and cause; `begun` is the cause of a roll that starts now."""
    cause = begun or ctx.memory.rolls.causes.get(member.name, "it is outdated")
    return {"restarts": pod, "cause": cause} if pod else {}


async def _delete(ctx: ClusterContext, member: Workload, deletion: PodDeletion) -> None:
    """Delete a pod for a roll, if a live read shows that it is not Ready, or if it was prepared (F11, I10)."""
    seen = Destroyer(ctx.deps.client).observe(PODS, deletion.pod, ctx.namespace)
    if seen is None or seen.object.metadata.uid != deletion.uid or seen.object.metadata.deletion_timestamp:
        return
    if deletion.prepared or not seen.object.decode_as(Pod).is_ready:
        with bound_contextvars(**_restarted(ctx, member, deletion.pod)):
            await Delete(seen, deletion.why)
        await tell_restart(ctx, member.name, deletion.pod, f"restarting pod {deletion.pod}")


def _fixed(body: Json, wanted: Json) -> Refused | None:
    """Refuse a change of an immutable field of a StatefulSet; `member.volumes.changes` handles larger volumes."""
    if change := fixed_field_change(body, with_sizes_of(body, wanted)):
        return Refused(FIXED_FIELD, f"{change}; Kubernetes allows no change of that in a StatefulSet; take it back")
    return None
