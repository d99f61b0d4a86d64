"""The Job of a TidbInitializer, which runs once, and again only at the user's request (other-resources.md 2.2).

    phase          Job                        action
    none, Pending  none                       create it, once everything that its pod mounts exists
    none, Pending  ended, of an earlier run   delete it
    not ended      exists                     copy its status; recreate a missing ConfigMap
    not ended      exists, its pod can't      recreate it from the present spec, because no SQL has run
                   start, the spec differs
    Running        none                       Failed: its result is lost, and SQL must not run twice
    ended          any                        none, until the annotation `tidb.pingcap.com/run` has another value

The Job has a copy of that annotation, which identifies its run; after the Job is gone, the ConfigMap has it.
"""

from apis.initializers import TidbInitializer, TidbInitializerStatus
from apis.tidbcluster import TidbCluster
from controllers.initializer import following
from controllers.initializer.following import COMPLETED, FAILED, PENDING, RUNNING
from controllers.job_deletion import delete_job
from controllers.simple_kind import Reconcile
from controllers.target_cluster import find_cluster
from kube.objects import Object, whose
from kube.resources import CONFIG_MAPS, JOBS, TIDB_INITIALIZERS, Resource
from member.initializer import desired
from member.initializer.desired import INIT_SQL, RUN
from member.outcome import Done, Outcome, Refused, Waiting

_LOOK_AGAIN = 10.0
"""Seconds until the operator reads Secrets and ConfigMaps of the user again, which it does not watch."""
_GOING = 2.0
"""Seconds until the operator checks a Job again that is being deleted."""


async def initialize(ctx: Reconcile[TidbInitializer]) -> Outcome:
    """The only stage of the kind. Raises OwnerGone, ForeignOwner, ApiError, TransportError."""
    status = ctx.model.status
    status.phase = status.phase or PENDING
    job = ctx.cached(JOBS, desired.object_name(ctx.model)) or _of_another_cluster(ctx)
    if status.phase in (COMPLETED, FAILED):
        return _again(ctx, job)
    if job is None and status.phase == RUNNING and (job := _live(ctx, JOBS, desired.object_name(ctx.model))) is None:
        return following.lost(ctx)
    if job is not None and not ctx.controls(job):
        return _of_another(job)
    return await _begin(ctx) if job is None else await _go_on(ctx, job)


async def observe(ctx: Reconcile[TidbInitializer]) -> Outcome:
    """Follow a running Job. Raises ApiError, TransportError."""
    job = ctx.cached(JOBS, desired.object_name(ctx.model))
    is_under_way = ctx.model.status.phase == RUNNING and job is not None and ctx.controls(job)
    return await following.follow(ctx, job) if job is not None and is_under_way else Done()


async def _go_on(ctx: Reconcile[TidbInitializer], job: Object) -> Outcome:
    if ctx.model.status.phase != RUNNING and following.has_ended(job) and _is_of_earlier_run(ctx, job):
        return await _delete(ctx, job)
    if _is_mistaken(ctx, job):
        return await _make_again(ctx, job)
    _keep_config_map(ctx, job)
    return await following.follow(ctx, job)


def _keep_config_map(ctx: Reconcile[TidbInitializer], job: Object) -> None:
    """Recreate a missing ConfigMap for the same run: without it, a pod that has not started yet never would."""
    name, spec = desired.object_name(ctx.model), ctx.model.spec
    if following.has_ended(job) or job.metadata.name != name or ctx.cached(CONFIG_MAPS, name) is not None:
        return
    tc = find_cluster(ctx, ctx.namespace, spec.cluster.name, "spec.cluster.name")
    if isinstance(tc, TidbCluster):
        ctx.make(CONFIG_MAPS, desired.config_map(ctx.model, tc, run=job.metadata.annotations.get(RUN)))


def _of_another_cluster(ctx: Reconcile[TidbInitializer]) -> Object | None:
    """The Job that was created for the cluster that the spec named before."""
    return next((job for job in ctx.lister(JOBS).list(ctx.namespace) if ctx.controls(job)), None)


def _again(ctx: Reconcile[TidbInitializer], job: Object | None) -> Outcome:
    """Keep the recorded outcome, unless the user requests another run, which is noted before anything is deleted."""
    last = job or ctx.cached(CONFIG_MAPS, desired.object_name(ctx.model))
    if last is None or not _is_of_earlier_run(ctx, last):
        return following.recorded_outcome(ctx)
    live = _live(ctx, JOBS, last.metadata.name) or _live(ctx, CONFIG_MAPS, last.metadata.name)
    if live is None or not _is_of_earlier_run(ctx, live):
        return following.recorded_outcome(ctx)
    ctx.model.status = TidbInitializerStatus(phase=PENDING)
    return Waiting("RunningAgain", f"it is run again, since annotation {RUN} has another value")


async def _begin(ctx: Reconcile[TidbInitializer]) -> Outcome:
    """Create ConfigMap and Job, once everything that the pod mounts exists."""
    spec = ctx.model.spec
    ctx.model.status.phase = PENDING
    tc = find_cluster(ctx, ctx.namespace, spec.cluster.name, "spec.cluster.name")
    if isinstance(tc, Waiting):
        return tc
    if tc.spec.tidb is None:
        return Waiting("NoTiDB", f"TidbCluster {tc.metadata.name} has no TiDB: waiting for its spec.tidb")
    if missing := _missing(ctx, tc):
        return missing
    if ctx.live_owner().metadata.resource_version != ctx.owner.metadata.resource_version:
        # the live phase may show an ended run already
        return Waiting(
            "CacheOutdated", "the TidbInitializer has changed; waiting for the operator's cache to show that", 0.5
        )
    ctx.apply(CONFIG_MAPS, desired.config_map(ctx.model, tc, run=ctx.model.metadata.annotations.get(RUN)))
    job = ctx.make(JOBS, desired.job(ctx.model, tc))
    return await following.follow(ctx, job) if ctx.controls(job) else _of_another(job)


def _missing(ctx: Reconcile[TidbInitializer], tc: TidbCluster) -> Waiting | None:
    """The wait for objects that the user must create; without this check the pod would wait silently."""
    for name in desired.secret_names(ctx.model, tc):
        if ctx.secret(name, ctx.namespace) is None:
            return Waiting("MissingSecret", f"Secret {name} does not exist; create it", _LOOK_AGAIN)
    if not (name := ctx.model.spec.init_sql_config_map or ""):
        return None
    found = ctx.owned.runtime.client.find(CONFIG_MAPS, name, ctx.namespace)
    if found is None or INIT_SQL not in (found.decode().get("data") or {}):
        what = f"ConfigMap {name} {'does not exist' if found is None else f'has no key {INIT_SQL}'}"
        return Waiting("MissingConfigMap", f"{what}; create it with the SQL under that key", _LOOK_AGAIN)
    return None


async def _delete(ctx: Reconcile[TidbInitializer], job: Object) -> Outcome:
    """Delete the Job of an earlier run and its pods."""

    def may_go(job: Object) -> bool:
        return following.has_ended(job) and _is_of_earlier_run(ctx, job)

    await delete_job(ctx.owned.runtime, ctx.owner, TIDB_INITIALIZERS, job.metadata.name, may_go)
    return Waiting("RunningAgain", "waiting for the Job of the earlier run to be gone", _GOING)


async def _make_again(ctx: Reconcile[TidbInitializer], job: Object) -> Outcome:
    """Delete a Job whose pod cannot start, after the phase in the status was reset to Pending."""
    name = job.metadata.name
    if ctx.model.status.phase != PENDING:
        ctx.model.status = TidbInitializerStatus(phase=PENDING)
        return Waiting("MakingJobAgain", f"Job {name} is recreated with the spec as it is now: its pod can't start")
    await delete_job(ctx.owned.runtime, ctx.owner, TIDB_INITIALIZERS, name, lambda job: _is_mistaken(ctx, job))
    return Waiting("MakingJobAgain", f"waiting for Job {name}, whose pod can't start, to be gone", _GOING)


def _is_mistaken(ctx: Reconcile[TidbInitializer], job: Object) -> bool:
    """True if the pod of a Job cannot start and the spec has changed since. Raises ApiError, TransportError."""
    is_other = not following.has_ended(job) and desired.differs(job.decode(), ctx.model)
    return is_other and not following.has_begun(ctx, job)


def _is_of_earlier_run(ctx: Reconcile[TidbInitializer], made: Object) -> bool:
    """True if the user requests another run, by an annotation that differs from the copy in `made`."""
    wanted = ctx.model.metadata.annotations.get(RUN)
    return bool(wanted) and made.metadata.annotations.get(RUN) != wanted


def _of_another(job: Object) -> Outcome:
    owner, name = job.metadata.controller, job.metadata.name
    if owner is not None and owner.kind == TIDB_INITIALIZERS.kind:
        what = f"Job {name} was made by TidbInitializer {owner.name}: a cluster has one initializer"
        return Refused("SecondInitializer", f"{what}; delete one of the two", _LOOK_AGAIN)
    return Refused("ForeignOwner", f"Job {name} exists, {whose(job)}; delete it", _LOOK_AGAIN)


def _live(ctx: Reconcile[TidbInitializer], resource: Resource, name: str) -> Object | None:
    return ctx.owned.runtime.client.find(resource, name, ctx.namespace)
