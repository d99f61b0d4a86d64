"""The state in which stores of a kind serve as wanted, and their scale-out (lifecycle.md 6.5, 8.4)."""

from apis import predicates
from member.context import ReconcileContext
from member.evidence import no_store
from member.failover.steps import named
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.stateless import scale_out_parallelism
from member.observed.pods import wanted_pods
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.stores.kind import StoreKind


def stores_up(ctx: ReconcileContext, kind: StoreKind) -> Outcome:
    """Done if all stores are Up; otherwise the wait, with what is missing. Called when all pods are Ready."""
    stores = kind.status_in(ctx).stores
    if predicates.all_members_ready(ctx.tc, kind.name):
        return Done(f"{len(stores)} of {len(stores)} stores are Up")
    ill = [f"{store.pod_name} is {store.state}" for store in stores.values() if not store.is_up]
    known = {store.pod_name for store in stores.values()}
    ill += [f"{named(ctx, kind.name, pod)} has no store" for pod in wanted_pods(ctx, kind.name) if pod not in known]
    up = f"{sum(store.is_up for store in stores.values())} stores are Up"
    return Waiting("StoresNotUp", f"{up}; {', '.join(ill)}" if ill else up, next_poll(ctx, kind.name))


def scale_out(kind: StoreKind) -> ScaleOut:
    """The scale-out procedure of a kind of stores."""
    return ScaleOut(
        limit=scale_out_parallelism,
        allowed=lambda ctx: _stores_known(ctx, kind),
        is_member=lambda ctx, pod: any(store.pod_name == pod for store in kind.status_in(ctx).stores.values()),
        volumes_unused=lambda ctx, pod: no_store(ctx, kind.name, pod),
    )


def _stores_known(ctx: ReconcileContext, kind: StoreKind) -> Waiting | None:
    """The wait for a current report of PD: only PD knows which pods have a store (F7)."""
    if kind.status_in(ctx).synced:
        return None
    what = f"waiting for PD to report the {kind.title} stores before scaling out"
    return Waiting("StoresUnknown", what, next_poll(ctx, kind.name))
