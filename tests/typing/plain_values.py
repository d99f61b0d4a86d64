"""What mypy refuses: destruction with plain or cached values (design.md 3.6). Each line that is ignored is an error."""

from apis.ordinals import OrdinalSet
from dataplane.pd import Member, PDClient, Store
from kube.deletion import Destroyer, LiveObject
from kube.objects import Json, Object
from member.actions import Delete, RemoveMember, RemoveStore
from member.apply import stateful_set
from member.apply.stateful_set import Replicas, UpdateStrategy, with_replicas, with_size, with_strategy
from member.context import ReconcileContext
from member.evidence import Evidence, pods_live, spec_confirmed


def of_kubernetes(ctx: ReconcileContext, cached: Object, seen: LiveObject, why: Evidence) -> None:
    """Objects: what goes and why."""
    Destroyer(ctx.deps.client).delete(cached)  # type: ignore[arg-type]
    Delete(cached, why)  # type: ignore[arg-type]
    Delete(seen, True)  # type: ignore[arg-type]
    Delete(seen, spec_confirmed(ctx))  # type: ignore[arg-type]
    Delete(seen)  # type: ignore[call-arg]


def of_pd(pd: PDClient, member: Member, store: Store, why: Evidence) -> None:
    """Plain members and stores are refused, because they prove nothing."""
    pd.delete_member(member)  # type: ignore[arg-type]
    pd.delete_store(store)  # type: ignore[arg-type]
    pd.delete_store(store.id)  # type: ignore[arg-type]
    pd.restore_store(store)  # type: ignore[arg-type]
    RemoveMember(pd, member, why)  # type: ignore[arg-type]
    RemoveStore(pd, store, why)  # type: ignore[arg-type]
    RemoveStore(pd, pd.store(store.id))  # type: ignore[call-arg]


async def of_stateful_sets(ctx: ReconcileContext, body: Json, live: Object) -> None:
    """Replicas and partitions."""
    with_replicas(body, 2)  # type: ignore[arg-type]
    with_size(body, 2)  # type: ignore[arg-type]
    with_strategy(body, {"type": "RollingUpdate"})  # type: ignore[arg-type]
    Replicas.lowered(body, [True])  # type: ignore[list-item]
    Replicas.lowered(body, pods_live(ctx, "tikv").pods)  # type: ignore[arg-type]
    Replicas.as_found(OrdinalSet(2), live)  # type: ignore[arg-type]
    UpdateStrategy.lowered(0, live)  # type: ignore[arg-type]
    UpdateStrategy.lowered(0)  # type: ignore[call-arg]
    replicas, strategy = Replicas.unchanged(body), UpdateStrategy.unchanged(body)
    await stateful_set.update(ctx, body, live, replicas=replicas)  # type: ignore[call-arg]
    await stateful_set.update(ctx, body, live, strategy=strategy)  # type: ignore[call-arg]
    await stateful_set.update(ctx, body, live, replicas=2, strategy=strategy)  # type: ignore[arg-type]
