"""What must be there before a Job is made, and the making of it (backup.md 3.5, 4.4)."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from apis import quantity
from apis.backup_shared import BRConfig
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.job_deletion import JOB_GOING
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner, M
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, condition_of
from kube.resources import JOBS, PERSISTENT_VOLUME_CLAIMS
from member.backups.environment import BadJob

_LOOK_AGAIN = 10.0
"""Seconds until what no event tells of is looked at again: a cluster that is not there, or not Ready."""


def refuse(ctx: JobOwner[M], problems: Sequence[Problem]) -> Result | None:
    """Say what is wrong with the spec; only an edit of it helps, and that is an event."""
    ctx.say(status.INVALID, "InvalidSpec", "; ".join(map(str, problems)))
    return None


def no_longer_invalid(ctx: JobOwner[M]) -> None:
    """Take back that the spec is not valid; v1.6 never looks at such an object again."""
    if status.holds(ctx.status, status.INVALID):
        ctx.say(status.INVALID, "Corrected", "the spec is valid now", is_true=False)


def cluster(ctx: JobOwner[M], br: BRConfig, *, is_ready: bool) -> TidbCluster:
    """The TidbCluster to work on, once it is Ready if that is asked for. Raises RequeueError."""
    found = ctx.tidb_cluster(br.cluster_namespace, br.cluster)
    where = f"{br.cluster_namespace}/{br.cluster}"
    if found is None:
        text = f"failed to fetch tidbcluster {where}"
        seen = "" if br.cluster_namespace == ctx.namespace else " where this operator may look"
        message = f"{text}: there is none{seen}; correct spec.br.cluster and spec.br.clusterNamespace, or create it"
        ctx.say(status.RETRY_FAILED, text, message)
        raise RequeueError(message, _LOOK_AGAIN)
    body = found.decode()
    ready = condition_of((body.get("status") or {}).get("conditions") or (), "Ready").get("status") == "True"
    if is_ready and not ready:
        raise RequeueError(f"waiting for TidbCluster {where} to be ready", _LOOK_AGAIN)
    try:
        tc = with_defaults(decode(body, TidbCluster))
    except InvalidField as error:
        raise RequeueError(f"waiting for TidbCluster {where} to be valid: {error}", _LOOK_AGAIN) from error
    if tc.spec.pd is None:
        of = tc.spec.cluster
        whole = f"{of.namespace or br.cluster_namespace}/{of.name}" if of else "the one that has"
        give_up(ctx, "NoPD", f"TidbCluster {where} has no PD of its own; name {whole} in spec.br.cluster")
    return tc


def schedule(ctx: JobOwner[M], name: str, build: Callable[[], Json], reason: str) -> Result | None:
    """Have the Job `name`, which `build` makes, and say so; `reason` is that of not getting it.

    One of ours that is there already was made by this process or by one before; v1.6 calls it a failure where its
    cache lacks it. Raises RequeueError, ApiError, TransportError.
    """
    there = ctx.live_job(name)
    if there is None:
        make(ctx, build, reason)
    elif there.metadata.deletion_timestamp:
        return Result(requeue_after=JOB_GOING)
    elif not ctx.controls(there):
        kind = ctx.resource.kind
        give_up(ctx, reason, f"Job {there.key} is not this {kind}'s; delete it, or rename the {kind}")
    ctx.say(status.SCHEDULED)
    return None


def make(ctx: JobOwner[M], build: Callable[[], Json], reason: str) -> None:
    """Make a Job. Raises RequeueError, TransportError."""
    try:
        job = build()
    except BadJob as error:
        give_up(ctx, error.reason, str(error))
    try:
        ctx.create(JOBS, job)
    except AlreadyExists as error:
        raise RequeueError(f"Job {job['metadata']['name']} was made meanwhile", JOB_GOING) from error
    except ApiError as error:
        give_up(ctx, reason, f"Job {job['metadata']['name']} could not be made: {error.message}")


def ensure_claim(ctx: JobOwner[M], desired: Json) -> None:
    """Make the claim of an export or import, or see that the one that is there is large enough. Raises BadJob."""
    name, size = desired["metadata"]["name"], desired["spec"]["resources"]["requests"]["storage"]
    there = ctx.runtime.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
    if there is None:
        try:
            ctx.create(PERSISTENT_VOLUME_CLAIMS, desired)
        except AlreadyExists as error:
            raise BadJob("CreatePVCFailed", f"claim {name} was made by another at the same time") from error
        except ApiError as error:
            raise BadJob("CreatePVCFailed", f"claim {name} could not be made: {error.message}") from error
        return
    has = there.decode()["spec"]["resources"]["requests"]["storage"]
    if quantity.parse(has) < quantity.parse(size):
        message = f"spec.storageSize: {size}: claim {name} of earlier Jobs has {has}; delete it, or ask for less"
        raise BadJob("PVCStorageSizeTooSmall", message)


def give_up(ctx: JobOwner[M], reason: str, message: str) -> NoReturn:
    """Say what is in the way, and try again with growing pauses. Raises RequeueError."""
    ctx.say(status.RETRY_FAILED, reason, message)
    raise RequeueError(message)
