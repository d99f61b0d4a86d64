"""`evict-leader` on a TiKV pod: its region leaders move away; with `delete-pod` the pod then restarts.

`status.tikv.evictLeader` lists the pods that this command evicts. An entry is stored before the scheduler is created in
PD, and removed after it. Entries with `delete-pod` also make pods take turns: one per cluster.
"""

from apis import pod_commands
from apis.component_statuses import EvictLeaderStatus
from apis.pod_commands import DELETE_POD, NONE
from apis.times import stamp
from dataplane.pd import PDClient, Store
from kube.deletion import Destroyer
from kube.objects import Object
from kube.resources import PODS
from member import api_clients, labels
from member.commands import RETRY_BUSY, RETRY_DRAINING, RETRY_SOON, restart, withdraw
from member.context import ReconcileContext
from member.naming import ordinal_of
from member.observed.command_annotations import Command, seconds_left
from member.observed.pod import Pod
from member.observed.pods import pods_of, wanted_pods
from member.outcome import Done, Failed, Outcome, Refused, Waiting
from member.stores import evictions
from member.stores.failover import ignored_pods
from member.stores.kind import TIKV_STORES
from member.stores.reports import not_up, own_stores, restarting
from member.stores.rolling import away, quorum_wait
from member.tikv.rolling import flush_log_backup

EVICTING = "EvictingLeaders"
ENDED = "LeaderEvictionEnded"

_COMMANDS = (pod_commands.EVICT_LEADER, pod_commands.EVICT_LEADER_FOR_RESIZE)
_OTHER_EVICTIONS = (labels.EVICT_LEADER_BEGIN_TIME, labels.SCALE_IN_TIME)
"""The marks that rolling restarts and scale-ins leave on a pod during their own evictions."""


def is_one(command: Command) -> bool:
    """True if a command evicts leaders."""
    return command.key in _COMMANDS


async def act(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Take one step of an eviction. Raises DataPlaneError, ApiError, TransportError, LeaseExpired."""
    name = pod.metadata.name
    if seconds_left(pod, command, ctx.deps.clock.wall()) == 0:
        await withdraw(pod, (*_COMMANDS, labels.TIKV_EVICT_LEADER_EXPIRATION_TIME))
        return Done(
            f"annotation {command.key} of pod {name} has expired, or its expiration time is invalid",
            "EvictLeaderExpired",
        )
    if command.value == DELETE_POD and (other := _being_restarted(ctx, name)):
        return Waiting(
            "AnotherPodRestarting",
            f"waiting for pod {other} to be restarted before evicting leaders from pod {name}",
            RETRY_BUSY,
        )
    pd = api_clients.pd(ctx)
    stores = pd.stores()
    own = own_stores(ctx, TIKV_STORES, stores, ordinal_of(name))
    if len(own) != 1 or not own[0].complete:
        return Failed("StoreUnknown", f"PD does not report exactly one store for pod {name}")
    store = own[0]
    if ill := not_up(ctx, TIKV_STORES, stores, store.id, pods_of(ctx, "tikv")):
        return Waiting(
            "StoresNotUp", f"waiting for all stores to be Up before evicting leaders from pod {name}: {ill}", RETRY_BUSY
        )
    if not any(other.id != store.id and not other.is_tiflash for other in stores):
        return await _alone(ctx, pod, command, store)
    return _record_eviction(ctx, pod, command, store) or await _evict(ctx, pd, pod, command, store)


async def end(ctx: ReconcileContext, name: str, pod: Object | None) -> Outcome:
    """Let leaders return to a pod without a command, or remove the entry of a pod that is gone.

    A restarting pod keeps its scheduler until it is Ready. Raises the same errors as `act`.
    """
    entry = ctx.status.tikv.evict_leader.get(name)
    if entry is None or (pod is None and not _is_gone(ctx, name)):
        return Done()
    if pod is not None and pod.metadata.deletion_timestamp:
        return Done()
    if pod is not None and entry.value == DELETE_POD and not pod.decode_as(Pod).is_ready:
        return Waiting(EVICTING, f"waiting until pod {name} is Ready before ending its leader eviction", RETRY_DRAINING)
    if pod is None or not any(mark in pod.metadata.annotations for mark in _OTHER_EVICTIONS):
        pd = api_clients.pd(ctx)
        stores = pd.all_stores()
        if not stores:
            return Waiting(
                EVICTING,
                f"waiting for PD to report its stores before ending the leader eviction of pod {name}",
                RETRY_DRAINING,
            )
        own = own_stores(ctx, TIKV_STORES, stores, ordinal_of(name))
        if pod is not None and entry.value == DELETE_POD and any(restarting(ctx, TIKV_STORES, own, [pod])):
            what = f"waiting for the store of pod {name} to report to PD before ending its leader eviction"
            return Waiting(EVICTING, what, RETRY_DRAINING)
        for store_id in sorted({store.id for store in own} & pd.evicting_stores()):
            # a scheduler outlives its store
            await evictions.end(ctx, pd, store_id)
    entries = ctx.status.tikv.evict_leader
    ctx.status.tikv.evict_leader = {key: value for key, value in entries.items() if key != name}
    return Done(f"ended the leader eviction of pod {name}" if pod else f"pod {name} no longer exists", ENDED)


def _record_eviction(ctx: ReconcileContext, pod: Object, command: Command, store: Store) -> Waiting | None:
    """Record that the eviction is the command's, before the eviction begins (F16)."""
    name, entries = pod.metadata.name, ctx.status.tikv.evict_leader
    known = entries.get(name)
    begun = (known and known.begin_time) or stamp(ctx.deps.clock.wall())
    created = pod.metadata.creation_timestamp
    entry = EvictLeaderStatus(pod_create_time=created, begin_time=begun, value=command.value)
    if entry == known:
        return None
    ctx.status.tikv.evict_leader = entries | {name: entry}
    return Waiting(EVICTING, f"evicting leaders from pod {name} (store {store.id})", RETRY_SOON)


async def _evict(ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command, store: Store) -> Outcome:
    name = pod.metadata.name
    evicting = pd.evicting_stores()
    doubt = evictions.doubt(ctx, store.id, evicting)
    if not evictions.has_begun(ctx, store.id, evicting):
        await evictions.begin(ctx, pd, store.id)
    what = f"evicting leaders from pod {name} (store {store.id})"
    if command.value == NONE and doubt:
        return Waiting(EVICTING, f"{what}{doubt}", RETRY_DRAINING)
    if command.value == NONE:
        return Done(f"leaders are kept away from pod {name} (store {store.id})", EVICTING)
    left = api_clients.tikv(ctx, name).leader_count()
    if left:
        return Waiting(EVICTING, f"{what}: {left} left{doubt}", RETRY_DRAINING)
    if waiting := await _needed(ctx, pd, pod, store):
        return waiting
    return await restart(ctx, pod, command, ignored_pods(ctx, TIKV_STORES), f"store {store.id} leads no regions")


async def _needed(ctx: ReconcileContext, pd: PDClient, pod: Object, store: Store) -> Waiting | None:
    """What a pod without leaders still waits for before it restarts: its log backup, other stores, and regions."""
    if waiting := await flush_log_backup(ctx, pod):
        return waiting
    if ill := away(ctx, TIKV_STORES, pd.stores(), store.id):
        what = f"waiting for all stores to be Up before restarting pod {pod.metadata.name}: {ill}"
        return Waiting("StoresNotUp", what, RETRY_BUSY)
    return await quorum_wait(ctx, pd, pod, store.id, restarts=True)


async def _alone(ctx: ReconcileContext, pod: Object, command: Command, store: Store) -> Outcome:
    """The outcome without another store: its leaders cannot move (F19)."""
    if command.value == DELETE_POD:
        return await flush_log_backup(ctx, pod) or await restart(
            ctx,
            pod,
            command,
            ignored_pods(ctx, TIKV_STORES),
            f"store {store.id} is the only one, so its leaders cannot be moved",
        )
    return Refused(
        "NoOtherStore", f"store {store.id} of pod {pod.metadata.name} is the only one, so its leaders cannot be moved"
    )


def _being_restarted(ctx: ReconcileContext, besides: str) -> str:
    """The pod whose eviction ends in a restart that is not complete; empty if there is none."""
    entries = ctx.status.tikv.evict_leader
    return next((name for name, entry in entries.items() if entry.value == DELETE_POD and name != besides), "")


def _is_gone(ctx: ReconcileContext, name: str) -> bool:
    """True if a pod that is not in the cache stays away: it is not wanted, and a live read finds none (F1)."""
    if name in wanted_pods(ctx, "tikv"):
        return False
    return Destroyer(ctx.deps.client).observe(PODS, name, ctx.namespace) is None
