"""The prerequisites of a Job, and its creation (backup.md 3.5, 4.4)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from apis.accessor import find
from apis.backup_shared import BRConfig, JobSpec, TiDBAccessConfig
from apis.components import ComponentType, component_type, with_needed
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.predicates import in_phase, is_available, status_of
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster
from controllers.job_deletion import JOB_TERMINATING, job_terminating
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner, M
from kube.actions import Decision
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, Object, condition_of, whose
from kube.resources import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS
from member.backups.environment import BadJob, job_env, secret_names
from member.labels import base_labels, selector_text
from member.outcome import Failed, NotDone, Waiting
from ports import quantity

Build: TypeAlias = Callable[[], Decision[Json]]
"""Builds a Job, after creating what it needs. Raises BadJob, ApiError, TransportError."""

_LOOK_AGAIN = 10.0
"""Seconds until the operator checks a cluster again that does not exist or does not serve."""
_REPLICAS = 3
"""The replicas of each region by default. With at least as many stores, one may be down."""


async def refuse(ctx: JobOwner[M], problems: Sequence[Problem]) -> None:
    """Write the condition Invalid. The operator does not retry: an edit of the spec enqueues the object."""
    await ctx.say(status.INVALID, "InvalidSpec", "; ".join(map(str, problems)))


async def no_longer_invalid(ctx: JobOwner[M]) -> None:
    """Withdraw the condition Invalid; v1.6 never syncs such an object again."""
    if status.holds(ctx.status, status.INVALID):
        await ctx.say(status.INVALID, "Corrected", "the spec is valid now", is_true=False)


def with_lacking_access(ctx: JobOwner[M], wait: str, spec: JobSpec, access: TiDBAccessConfig | None) -> str:
    """The sentence about a wait, and about a Secret that the Job will lack afterwards. Raises ApiError, TransportError.

    Otherwise the user would learn of the Secret only when the wait is over.
    """
    try:
        job_env(spec, access, ctx.secrets(secret_names(spec, access)))
    except BadJob as error:
        return f"{wait}; then {error}"
    return wait


async def serving_cluster(
    ctx: JobOwner[M], br: BRConfig, spec: JobSpec, access: TiDBAccessConfig | None = None
) -> TidbCluster | NotDone:
    """The TidbCluster that `br` names, once its PD and TiKV, which BR needs, serve.

    The wait also names a missing Secret of `spec` or `access`. v1.6 silently waits until the whole cluster is Ready,
    for example for a TiCDC pod that cannot be scheduled. Raises ApiError, TransportError.
    """
    tc = await cluster(ctx, br)
    if not isinstance(tc, TidbCluster):
        return tc
    if any(condition.type == "Ready" and condition.status == "True" for condition in tc.status.conditions):
        return tc
    where = f"TidbCluster {tc.metadata.namespace}/{tc.metadata.name}"
    if lack := _not_serving(tc):
        message = f"waiting for {where}, with which BR cannot work: {lack}"
        return Waiting("ClusterNotServing", with_lacking_access(ctx, message, spec, access), _LOOK_AGAIN)
    if others := _of_other_images(ctx, tc):
        message = f"waiting for {where}: TiKV is being upgraded, and BR must fit all of it: {others}"
        return Waiting("TiKVUpgrading", with_lacking_access(ctx, message, spec, access), _LOOK_AGAIN)
    return tc


def _not_serving(tc: TidbCluster) -> str:
    """A sentence about PD or TiKV that does not serve; empty if all regions have a majority, as far as PD reports."""
    for row in with_needed(component_type("tikv")):
        if outage := _outage(tc, row):
            return outage
        if not is_available(tc, row.name):
            return row.unavailable
    stores = [*tc.status.tikv.stores.values(), *tc.status.tikv.peer_stores.values()]
    down = sorted(store.pod_name or store.id for store in stores if not store.is_up)
    tolerated = 1 if len(stores) >= _REPLICAS else 0
    if len(down) <= tolerated:
        return ""
    return f"{len(down)} of {len(stores)} TiKV stores are not Up ({', '.join(down)}); regions may lack a majority"


def _outage(tc: TidbCluster, row: ComponentType) -> str:
    """The sentence with which a component reports that it cannot serve; empty if it may serve.

    Pods of backups may reach a PD that the operator cannot reach.
    """
    part = status_of(tc, row.name)
    if part is None or row.outage is None:
        return ""
    ready = condition_of(part.conditions, "Ready")
    cannot_serve = ready.get("reason") in row.outage.reasons - {row.outage.unreachable}
    return str(ready.get("message")).removesuffix(".") if ready.get("status") == "False" and cannot_serve else ""


def _of_other_images(ctx: JobOwner[M], tc: TidbCluster) -> str:
    """A sentence that names the TiKV pods without the image of the spec during an upgrade; empty otherwise.

    Raises ApiError, TransportError.
    """
    tikv = find(tc, "tikv")
    if tikv is None or not in_phase(tc, "tikv", "Upgrade"):
        return ""
    pods = ctx.runtime.client.list_page(
        PODS, tc.metadata.namespace, label_selector=selector_text(base_labels(tc, "tikv"))
    )
    others = [item.metadata.name for item in pods.items if _image_of(item.decode()) != tikv.image]
    return f"{tikv.image} does not run yet in {', '.join(others)}" if others else ""


def _image_of(pod: Json) -> str:
    images = (container.get("image") for container in pod["spec"]["containers"] if container["name"] == "tikv")
    return next((str(image) for image in images), "")


async def cluster(ctx: JobOwner[M], br: BRConfig) -> TidbCluster | NotDone:
    """The TidbCluster that `br` names, serving or not. Raises ApiError, TransportError."""
    found = ctx.tidb_cluster(br.cluster_namespace, br.cluster)
    if isinstance(found, Waiting):
        return found
    where = f"{br.cluster_namespace}/{br.cluster}"
    if found is None:
        text = f"failed to fetch tidbcluster {where}"
        seen = "" if br.cluster_namespace == ctx.namespace else " where this operator may look"
        message = f"{text}: there is none{seen}; correct spec.br.cluster and spec.br.clusterNamespace, or create it"
        await ctx.say(status.RETRY_FAILED, text, message)
        return Waiting("ClusterMissing", message, _LOOK_AGAIN)
    try:
        tc = with_defaults(decode(found.decode(), TidbCluster))
    except InvalidField as error:
        message = f"waiting for TidbCluster {where}, which cannot be read: {error}; correct its spec"
        return Waiting("ClusterInvalid", message, _LOOK_AGAIN)
    if tc.spec.pd is None:
        of = tc.spec.cluster
        whole = f"{of.namespace or br.cluster_namespace}/{of.name}" if of else "the one that has"
        return await give_up(ctx, "NoPD", f"TidbCluster {where} has no PD of its own; name {whole} in spec.br.cluster")
    return tc


async def schedule(
    ctx: JobOwner[M],
    name: str,
    build: Build,
    reason: str,
    prepare: Callable[[], Decision[None]] | None = None,
    *,
    record: Callable[[], Decision[None]] | None = None,
) -> NotDone | None:
    """Create the Job `name` from `build` and write the condition Scheduled, or what `record` writes in its place.

    `reason` is the reason of a failure.

    `prepare` writes what the Job requires, once `build` has shown that nothing is missing. A Job may remove or replace
    data, so a live read confirms that the object still asks for it. An existing Job of this object was created earlier,
    and counts as success; in v1.6 it is a failure if the cache lacks it. Raises ApiError, TransportError.
    """
    there = await own_job(ctx, name, reason)
    if isinstance(there, Failed):
        return there
    if there is not None and there.metadata.deletion_timestamp:
        return job_terminating(name)
    job = await built(ctx, build) if there is None else None
    if isinstance(job, Failed):
        return job
    if job is not None and (wait := ctx.outdated()):
        return wait
    if prepare is not None:
        await prepare()
    if job is not None and (lacking := await _create(ctx, job, reason)):
        return lacking
    await (record() if record is not None else ctx.say(status.SCHEDULED))
    return None


async def own_job(ctx: JobOwner[M], name: str, reason: str) -> Object | Failed | None:
    """The Job of this object with a name, read live; None if there is none, a failure if it has another owner.

    Raises ApiError, TransportError.
    """
    there, kind = ctx.live_job(name), ctx.resource.kind
    if there is not None and not there.metadata.deletion_timestamp and not ctx.controls(there):
        return await give_up(ctx, reason, f"{job_of_others(kind, there)}, or rename the {kind}")
    return there


def job_of_others(kind: str, job: Object) -> str:
    """The sentence that a Job with the needed name has another owner, and the first way out."""
    return f"Job {job.key} is not this {kind}'s: it is {whose(job)}; delete it"


async def built(ctx: JobOwner[M], build: Build) -> Json | Failed:
    """The result of `build`, or the failure if something is missing that it needs."""
    try:
        return await build()
    except BadJob as error:
        return await give_up(ctx, error.reason, str(error))


async def make(ctx: JobOwner[M], build: Build, reason: str) -> NotDone | None:
    """Create the Job that `build` returns; return what prevents that. Raises TransportError."""
    job = await built(ctx, build)
    return job if isinstance(job, Failed) else ctx.outdated() or await _create(ctx, job, reason)


async def _create(ctx: JobOwner[M], job: Json, reason: str) -> NotDone | None:
    try:
        await ctx.create(JOBS, job)
    except AlreadyExists:
        message = f"waiting for the operator's cache to show Job {job['metadata']['name']}, which exists already"
        return Waiting("CacheOutdated", message, JOB_TERMINATING)
    except ApiError as error:
        return await give_up(ctx, reason, f"Job {job['metadata']['name']} could not be made: {error.message}")
    return None


async def ensure_claim(ctx: JobOwner[M], desired: Json) -> None:
    """Create the claim of an export or import. Raises BadJob if that fails or an existing claim is too small."""
    name, size = desired["metadata"]["name"], desired["spec"]["resources"]["requests"]["storage"]
    there = ctx.runtime.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace)
    if there is None:
        try:
            await ctx.create(PERSISTENT_VOLUME_CLAIMS, desired)
        except AlreadyExists as error:
            raise BadJob("CreatePVCFailed", f"claim {name} was made by another at the same time") from error
        except ApiError as error:
            raise BadJob("CreatePVCFailed", f"claim {name} could not be made: {error.message}") from error
        return
    has = there.decode()["spec"]["resources"]["requests"]["storage"]
    if quantity.parse(has) < quantity.parse(size):
        message = f"spec.storageSize: {size}: claim {name} of earlier Jobs has {has}; delete it, or ask for less"
        raise BadJob("PVCStorageSizeTooSmall", message)


async def give_up(ctx: JobOwner[M], reason: str, message: str) -> Failed:
    """Write the condition RetryFailed, and return the failure, which is retried with growing delays."""
    await ctx.say(status.RETRY_FAILED, reason, message)
    return Failed(reason, message)
