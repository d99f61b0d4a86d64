"""Writes of StatefulSets. Fewer replicas and a lower partition require evidence (design.md 3.6, F5, I3, I4).

The constructors of Replicas and UpdateStrategy determine whether the new values remove or restart pods, and take the
evidence. Before the write, the new values are compared with the live ones; without the required evidence nothing is
written.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import InitVar, dataclass
from typing import final

from apis.ordinals import OrdinalSet
from kube.actions import Apply, Merge
from kube.errors import ApiError, Invalid
from kube.objects import Json, Object
from kube.resources import OTHER_STATEFUL_SETS, STATEFUL_SETS
from kube.semantic import semantically_equal
from member.apply.foreign_edits import ForeignEdit, admitted_template, foreign_edit, with_written_generation
from member.apply.last_applied import applied, stamped
from member.apply.writes import make_or_find
from member.context import ClusterContext
from member.evidence import Evidence, require
from member.labels import ADMITTED_TEMPLATE
from member.objects.stateful_set import ON_DELETE, is_advanced, lowest_restarted, ordinals_of, with_slots

_CONSTRUCTORS = object()


class EvidenceMissing(AssertionError):
    """Raised instead of a write that would remove or restart pods without evidence: a defect of the operator."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The pods that a StatefulSet gets; `gone` is the evidence for each pod that is removed, the highest first."""

    pods: OrdinalSet
    gone: tuple[Evidence, ...] = ()
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a constructor is the maker and `gone` holds Evidence."""
        _require_constructor(maker, "Replicas are unchanged, raised, lowered or as_found")
        for evidence in self.gone:
            require(evidence, "Replicas.lowered")

    @property
    def count(self) -> int:
        """The number of pods."""
        return self.pods.replicas

    @classmethod
    def unchanged(cls, body: Json) -> "Replicas":
        """The present pods."""
        return cls(pods=ordinals_of(body), maker=_CONSTRUCTORS)

    @classmethod
    def raised(cls, body: Json, pods: OrdinalSet) -> "Replicas":
        """At least the present pods. Raises ValueError if one is missing."""
        if missing := set(ordinals_of(body).ordinals).difference(pods.ordinals):
            raise ValueError(f"{pods} would remove pods {sorted(missing)}; use Replicas.lowered")
        return cls(pods=pods, maker=_CONSTRUCTORS)

    @classmethod
    def lowered(cls, body: Json, gone: Sequence[Evidence], wanted: OrdinalSet | None = None) -> "Replicas":
        """The present pods without the first on the way to `wanted`, as many as evidence says that nothing is left of.

        Without `wanted`, the highest ones go.
        """
        here = ordinals_of(body)
        steps = here.steps(wanted or OrdinalSet(here.replicas - len(gone), here.slots))
        return cls(pods=steps[len(gone) - 1].after if gone else here, gone=tuple(gone), maker=_CONSTRUCTORS)

    @classmethod
    def as_found(cls, pods: OrdinalSet, looked: Evidence) -> "Replicas":
        """The pods that a live read has found, for a StatefulSet that is recreated around them."""
        require(looked, "Replicas.as_found")
        return cls(pods=pods, maker=_CONSTRUCTORS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStrategy:
    """The update strategy that a StatefulSet gets: `spec`, and in `why` the evidence for restarting more pods.

    `restarts_none`: True if all pods within its reach run the newest revision.
    """

    spec: Json
    why: Evidence | None = None
    restarts_none: bool = False
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a constructor is the maker."""
        _require_constructor(maker, "an UpdateStrategy is unchanged, on_delete, above_all, after_on_delete or lowered")

    @classmethod
    def unchanged(cls, body: Json) -> "UpdateStrategy":
        """The present strategy."""
        return cls(spec=body["spec"]["updateStrategy"], maker=_CONSTRUCTORS)

    @classmethod
    def on_delete(cls) -> "UpdateStrategy":
        """OnDelete: pods get the newest revision when they are deleted."""
        return cls(spec={"type": ON_DELETE}, maker=_CONSTRUCTORS)

    @classmethod
    def above_all(cls, bound: int) -> "UpdateStrategy":
        """A partition above all pods, so that none restarts; `bound` is one above the highest ordinal."""
        return cls(spec=_rolling_update(bound), maker=_CONSTRUCTORS)

    @classmethod
    def after_on_delete(cls, outdated: Iterable[int]) -> "UpdateStrategy":
        """The successor of OnDelete: a partition above all ordinals that may be outdated, so that none restarts.

        This needs no live read: the other pods were seen on the newest revision. They keep it as long as the
        StatefulSet has the version that is patched.
        """
        partition = max((ordinal + 1 for ordinal in outdated), default=0)
        return cls(spec=_rolling_update(partition), restarts_none=True, maker=_CONSTRUCTORS)

    @classmethod
    def lowered(cls, partition: int, why: Evidence) -> "UpdateStrategy":
        """A partition equal to the ordinal of the pod that is restarted next."""
        require(why, "UpdateStrategy.lowered")
        return cls(spec=_rolling_update(partition), why=why, maker=_CONSTRUCTORS)


def with_replicas(desired: Json, replicas: Replicas) -> Json:
    """`desired` with these pods."""
    sized: Json = desired | {"spec": desired["spec"] | {"replicas": replicas.count}}
    return with_slots(sized, replicas.pods.slots)


def with_size(desired: Json, replicas: Replicas) -> Json:
    """`desired` with these pods, and a partition above them."""
    sized = with_replicas(desired, replicas)
    if "rollingUpdate" not in sized["spec"]["updateStrategy"]:
        return sized
    return with_strategy(sized, UpdateStrategy.above_all(ordinals_of(sized).bound))


def with_strategy(desired: Json, strategy: UpdateStrategy) -> Json:
    """`desired` with this update strategy."""
    return desired | {"spec": desired["spec"] | {"updateStrategy": strategy.spec}}


async def create(ctx: ClusterContext, desired: Json) -> Object | None:
    """Create a StatefulSet. Returns None, or the existing one, read live, if the cache only lacked it.

    Raises OwnerGone, ApiError, TransportError.
    """
    there, made = await make_or_find(ctx, STATEFUL_SETS, _with_defaults(ctx, with_written_generation(desired)))
    if not made:
        return there
    ctx.memory.made[there.metadata.name] = there.metadata.uid
    await _note_admission(there)
    return None


def edit_by_others(ctx: ClusterContext, live: Object) -> ForeignEdit | None:
    """The foreign edit in a StatefulSet; None if there is none, or if no client has written since its creation here."""
    meta, settled = live.metadata, ctx.memory.settled
    is_as_made = meta.generation == 1 and meta.uid == ctx.memory.made.get(meta.name)
    if is_as_made or settled.holds(foreign_edit, live, {}):
        return None
    edit = foreign_edit(live.decode())
    if edit is None:
        settled.note(foreign_edit, live, {})
    return edit


async def update(
    ctx: ClusterContext,
    desired: Json,
    live: Object,
    *,
    replicas: Replicas,
    strategy: UpdateStrategy,
    rewritten: Collection[str] = (),
    keeps_edits: bool = False,
) -> None:
    """Patch the differences in a StatefulSet; `desired` already has these replicas and this strategy.

    In the fields of the spec named by `rewritten`, only the desired content stays, even if other clients added values.
    With `keeps_edits`, foreign edits of the pod template stay and remain marked as foreign, so that they can be undone
    later.

    Raises EvidenceMissing, ForeignOwner, ApiError, TransportError; TypeError for plain values.
    """
    for value, made in ((replicas, Replicas), (strategy, UpdateStrategy)):
        if not isinstance(value, made):
            raise TypeError(f"a StatefulSet is written with {made.__name__}, which holds the evidence, not {value!r}")
    body = live.decode()
    _require_evidence(body, desired, replicas, strategy)
    before = applied(body)
    if before is not None and rewritten:
        there = {field: body["spec"][field] for field in rewritten if field in body["spec"]}
        before = before | {"spec": before["spec"] | there}
    wanted, edit = stamped(desired, body), edit_by_others(ctx, live)
    is_kept = keeps_edits or edit is None or not edit.hits_pods
    if before is not None and "template" not in rewritten and is_kept:
        wanted = _with_admitted_template(wanted, body, before)
    if not semantically_equal(body["spec"]["template"], wanted["spec"]["template"]):
        wanted = _with_defaults(ctx, wanted)
    noted = wanted if keeps_edits else with_written_generation(wanted, body, before)
    written = await Apply(STATEFUL_SETS, noted, live, applied=before, replaces=bool(rewritten))
    if written is not live and not keeps_edits:
        await _note_admission(written)


def _with_defaults(ctx: ClusterContext, desired: Json) -> Json:
    """An Advanced StatefulSet with the default values that the API server fills into native ones; those as they are.

    Pods then have the same template in a StatefulSet of either kind, so that a move between them restarts none. The
    server also refuses invalid templates this way. Raises Invalid, TransportError.
    """
    if not is_advanced(desired):
        return desired
    try:
        made = ctx.deps.client.try_create(OTHER_STATEFUL_SETS, desired, ctx.namespace)
    except Invalid:
        raise
    except ApiError:
        # the server does not try it out, e.g. because of a webhook that does not support that
        return desired
    return desired | {"spec": desired["spec"] | {"template": made.decode()["spec"]["template"]}}


async def _note_admission(written: Object) -> None:
    """Record on the StatefulSet what admission made of the pod template: it does not count as a foreign edit."""
    made = admitted_template(written.decode())
    if made is None or written.metadata.annotations.get(ADMITTED_TEMPLATE) == made:
        return
    meta = written.metadata
    identity = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    # without a version, as the StatefulSet may have changed meanwhile
    await Merge(STATEFUL_SETS, {"metadata": identity | {"annotations": {ADMITTED_TEMPLATE: made}}})


def _with_admitted_template(desired: Json, live: Json, before: Json) -> Json:
    """`desired` with the live pod template, if that is what admission made of the desired one.

    The template as the operator wrote it would restart pods for no reason once the admission webhook is silent or gone.
    """
    if not semantically_equal(before["spec"].get("template"), desired["spec"]["template"]):
        return desired
    return desired | {"spec": desired["spec"] | {"template": live["spec"]["template"]}}


def _require_evidence(live: Json, desired: Json, replicas: Replicas, strategy: UpdateStrategy) -> None:
    there, wanted, name = live["spec"], desired["spec"], desired["metadata"]["name"]
    removed = set(ordinals_of(live).ordinals).difference(ordinals_of(desired).ordinals)
    if removed and (replicas.count != wanted["replicas"] or len(replicas.gone) < len(removed)):
        what = f"StatefulSet {name} would be scaled from {there['replicas']} to {wanted['replicas']} replicas"
        raise EvidenceMissing(f"{what} without evidence for each pod that is removed; use Replicas.lowered")
    reached = lowest_restarted(desired)
    if reached >= min(lowest_restarted(live), ordinals_of(desired).bound):
        return
    if strategy.spec != wanted["updateStrategy"] or not _may_restart(strategy, there):
        what = f"StatefulSet {name} would restart pods from ordinal {reached} up without evidence for that"
        raise EvidenceMissing(f"{what}; use UpdateStrategy.lowered")


def _may_restart(strategy: UpdateStrategy, there: Json) -> bool:
    return strategy.why is not None or (strategy.restarts_none and there["updateStrategy"]["type"] == ON_DELETE)


def _rolling_update(partition: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def _require_constructor(maker: object, which: str) -> None:
    if maker is not _CONSTRUCTORS:
        raise TypeError(f"{which}: by those class methods")
