"""The wait of a point-in-time restore for TiKV to run without garbage collection (backup.md 4.4)."""

import contextlib
from collections.abc import Sequence

from apis import config, toml
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from controllers.job_owners import status
from controllers.job_owners.files import everything
from controllers.job_owners.job_owner import JobOwner
from kube.objects import Json, is_observed
from kube.resources import CONFIG_MAPS, STATEFUL_SETS, TIDB_CLUSTERS
from member.naming import member_name
from member.objects.config_map import CONFIG_FILE, in_use_config_map_name
from member.observed.restores import WAITING_FOR_GC_OFF, joined
from member.outcome import Waiting
from member.tikv.desired import GC_OFF, GC_RATIO

_LOOK_AGAIN = 10.0


async def wait_for_gc_off(ctx: JobOwner[Restore], tc: TidbCluster) -> Waiting | None:
    """The wait until all of TiKV runs without garbage collection; v1.6 begins during the restart.

    This includes stores that joined from other TidbClusters. The configuration and the running pods are read live.
    Raises ApiError, TransportError.
    """
    parts = _parts(ctx, tc)
    why = next((why for part in parts if part.spec.tikv is not None and (why := _not_yet(ctx, part))), "")
    if not why:
        await _warn_of_unseen(ctx, tc, parts)
        return None
    message = f"waiting for TiKV to run with {GC_RATIO} = {GC_OFF}, which the operator sets for this Restore: {why}"
    await ctx.say(status.RETRY_FAILED, WAITING_FOR_GC_OFF, message)
    return Waiting(WAITING_FOR_GC_OFF, message, _LOOK_AGAIN)


def _parts(ctx: JobOwner[Restore], tc: TidbCluster) -> list[TidbCluster]:
    """The TidbClusters of the database of `tc` that this operator can see, `tc` first."""
    there = everything(ctx, TIDB_CLUSTERS)
    own = (tc.metadata.namespace, tc.metadata.name)
    keys = joined(own, there, ctx.references) - {own}
    others = (obj for obj in there if (obj.metadata.namespace, obj.metadata.name) in keys)
    stay = (obj for obj in others if not obj.metadata.deletion_timestamp)
    clusters = [tc]
    for obj in stay:
        with contextlib.suppress(InvalidField):
            clusters.append(with_defaults(decode(obj.decode(), TidbCluster)))
    return clusters


async def _warn_of_unseen(ctx: JobOwner[Restore], tc: TidbCluster, parts: Sequence[TidbCluster]) -> None:
    """Emit an event that names the stores whose TidbCluster this operator cannot see: they may collect garbage."""
    seen = {store.pod_name for part in parts for store in part.status.tikv.stores.values()}
    unseen = sorted(
        each.pod_name or each.ip for each in tc.status.tikv.peer_stores.values() if each.pod_name not in seen
    )
    if unseen:
        message = (
            f"this operator does not see the TidbCluster of the TiKV stores {', '.join(unseen)}, which may collect as "
            f"garbage what is restored; set {GC_RATIO} = {GC_OFF} in its spec.tikv.config until this Restore has ended"
        )
        await ctx.warn(status.SCHEDULED, "GCNotOff", message)


def _not_yet(ctx: JobOwner[Restore], tc: TidbCluster) -> str:
    """A sentence about what TiKV still lacks; empty if it runs without garbage collection."""
    client, namespace = ctx.runtime.client, tc.metadata.namespace
    name = member_name(tc, "tikv")
    live = client.find(STATEFUL_SETS, name, namespace)
    if live is None:
        return f"StatefulSet {namespace}/{name} does not exist"
    body = live.decode()
    config_map = client.find(CONFIG_MAPS, in_use_config_map_name(tc, "tikv", body) or name, namespace)
    if config_map is None or not _is_off(config_map.decode()):
        return f"the ConfigMap of TidbCluster {namespace}/{tc.metadata.name} does not say so yet"
    return "" if has_rolled(body) else f"StatefulSet {namespace}/{name} is still being restarted"


def _is_off(config_map: Json) -> bool:
    try:
        tables = toml.loads((config_map.get("data") or {}).get(CONFIG_FILE) or "")
    except ValueError:
        return False
    return bool(config.get(tables, GC_RATIO) == GC_OFF)


def has_rolled(stateful_set: Json) -> bool:
    """True if all pods run the template of the StatefulSet and are Ready.

    Comparing revisions is not enough: both are the old one at once if a template is restored in the middle of a roll.
    """
    now, wanted = stateful_set.get("status") or {}, stateful_set["spec"].get("replicas", 1)
    counted = (now.get("updatedReplicas", 0), now.get("readyReplicas", 0))
    return is_observed(stateful_set) and counted == (wanted, wanted)
