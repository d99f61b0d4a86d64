"""What a restore to a point in time waits for: TiKV keeps what it would collect as garbage (backup.md 4.4)."""

from apis import config, toml
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from controllers.errors import RequeueError
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner
from kube.objects import Json, is_observed
from kube.resources import CONFIG_MAPS, STATEFUL_SETS
from member.naming import member_name
from member.objects.config_map import CONFIG_FILE, in_use_config_map_name
from member.tikv.desired import GC_OFF, GC_RATIO

_LOOK_AGAIN = 10.0


def wait_for_gc_off(ctx: JobOwner[Restore], tc: TidbCluster) -> None:
    """Wait until all of TiKV runs without garbage collection; v1.6 begins while it is still being restarted.

    What is asked for and what runs are read live. Raises RequeueError, ApiError, TransportError.
    """
    if tc.spec.tikv is None or not (why := _not_yet(ctx, tc)):
        return
    message = f"waiting for TiKV to run with {GC_RATIO} = {GC_OFF}, which the operator sets for this Restore: {why}"
    ctx.say(status.RETRY_FAILED, "WaitingForGCOff", message)
    raise RequeueError("WaitingForGCOff", message, _LOOK_AGAIN)


def _not_yet(ctx: JobOwner[Restore], tc: TidbCluster) -> str:
    """What is missing, in words; empty when nothing is."""
    client, namespace = ctx.runtime.client, tc.metadata.namespace
    name = member_name(tc, "tikv")
    live = client.find(STATEFUL_SETS, name, namespace)
    if live is None:
        return f"StatefulSet {namespace}/{name} does not exist"
    body = live.decode()
    config_map = client.find(CONFIG_MAPS, in_use_config_map_name(tc, "tikv", body) or name, namespace)
    if config_map is None or not _is_off(config_map.decode()):
        return "its ConfigMap does not say so yet"
    return "" if has_rolled(body) else f"StatefulSet {namespace}/{name} is still being restarted"


def _is_off(config_map: Json) -> bool:
    try:
        tables = toml.loads((config_map.get("data") or {}).get(CONFIG_FILE) or "")
    except ValueError:
        return False
    return bool(config.get(tables, GC_RATIO) == GC_OFF)


def has_rolled(stateful_set: Json) -> bool:
    """Whether all pods run what the StatefulSet says, and are Ready.

    Revisions do not tell: both are the old one at once where a template is put back in the middle of a roll.
    """
    now, wanted = stateful_set.get("status") or {}, stateful_set["spec"].get("replicas", 1)
    counted = (now.get("updatedReplicas", 0), now.get("readyReplicas", 0))
    return is_observed(stateful_set) and counted == (wanted, wanted)
