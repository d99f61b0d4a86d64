"""Writing a StatefulSet. Fewer replicas and a lower partition take evidence (design.md 3.6, F5, I3, I4).

Replicas and UpdateStrategy say by which constructor they were made whether they take pods away, or restart some, and on
what evidence. What is sent is compared with what is there: without the evidence it is not sent.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import InitVar, dataclass
from typing import final

from kube.objects import Json, Object
from kube.resources import STATEFUL_SETS
from kube.semantic import semantically_equal
from member.apply.foreign_edits import ForeignEdit, admitted_template, foreign_edit, with_written_generation
from member.apply.last_applied import applied, stamped
from member.apply.writes import make_or_find
from member.context import ClusterContext
from member.evidence import Evidence, require
from member.labels import ADMITTED_TEMPLATE
from member.objects.stateful_set import ON_DELETE, lowest_restarted

_CONSTRUCTORS = object()


class EvidenceMissing(AssertionError):
    """Raised instead of writing a StatefulSet that would lose or restart pods without evidence: a defect of ours."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many replicas a StatefulSet gets; `gone` are the reasons for which the highest pods may go, one for each."""

    count: int
    gone: tuple[Evidence, ...] = ()
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError for any maker but a constructor, or for anything but Evidence."""
        _require_constructor(maker, "Replicas are unchanged, raised, lowered or as_found")
        for each in self.gone:
            require(each, "Replicas.lowered")

    @classmethod
    def unchanged(cls, body: Json) -> "Replicas":
        """As many as the StatefulSet has."""
        return cls(count=body["spec"]["replicas"], maker=_CONSTRUCTORS)

    @classmethod
    def raised(cls, body: Json, count: int) -> "Replicas":
        """As many as the StatefulSet has, or more. Raises ValueError for fewer."""
        if count < body["spec"]["replicas"]:
            raise ValueError(f"{count} replicas are fewer than {body['spec']['replicas']}; use Replicas.lowered")
        return cls(count=count, maker=_CONSTRUCTORS)

    @classmethod
    def lowered(cls, body: Json, gone: Sequence[Evidence]) -> "Replicas":
        """One fewer for each evidence that nothing is left of a pod, from the highest down."""
        return cls(count=body["spec"]["replicas"] - len(gone), gone=tuple(gone), maker=_CONSTRUCTORS)

    @classmethod
    def as_found(cls, count: int, looked: Evidence) -> "Replicas":
        """As many as a live look has found, for a StatefulSet that is recreated around its pods."""
        require(looked, "Replicas.as_found")
        return cls(count=count, maker=_CONSTRUCTORS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStrategy:
    """The update strategy that a StatefulSet gets, in `spec`; `why` it may restart pods that none restarted before.

    `restarts_none`: whether all pods that come within its reach run the newest revision.
    """

    spec: Json
    why: Evidence | None = None
    restarts_none: bool = False
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError for any maker but a constructor."""
        _require_constructor(maker, "an UpdateStrategy is unchanged, on_delete, above_all, after_on_delete or lowered")

    @classmethod
    def unchanged(cls, body: Json) -> "UpdateStrategy":
        """The one that the StatefulSet has."""
        return cls(spec=body["spec"]["updateStrategy"], maker=_CONSTRUCTORS)

    @classmethod
    def on_delete(cls) -> "UpdateStrategy":
        """Pods get the newest revision when they are deleted."""
        return cls(spec={"type": ON_DELETE}, maker=_CONSTRUCTORS)

    @classmethod
    def above_all(cls, replicas: int) -> "UpdateStrategy":
        """A partition above so many pods: none of them is restarted."""
        return cls(spec=_rolling_update(replicas), maker=_CONSTRUCTORS)

    @classmethod
    def after_on_delete(cls, outdated: Iterable[int]) -> "UpdateStrategy":
        """In place of OnDelete, a partition above all ordinals that may be outdated: none of them is restarted.

        That needs no live look: the other pods were seen on the newest revision, which they keep as long as the
        StatefulSet is at the version that is patched.
        """
        partition = max((ordinal + 1 for ordinal in outdated), default=0)
        return cls(spec=_rolling_update(partition), restarts_none=True, maker=_CONSTRUCTORS)

    @classmethod
    def lowered(cls, partition: int, why: Evidence) -> "UpdateStrategy":
        """A partition at the pod that is restarted next."""
        require(why, "UpdateStrategy.lowered")
        return cls(spec=_rolling_update(partition), why=why, maker=_CONSTRUCTORS)


def with_replicas(desired: Json, replicas: Replicas) -> Json:
    """`desired` with another number of replicas."""
    return desired | {"spec": desired["spec"] | {"replicas": replicas.count}}


def with_size(desired: Json, replicas: Replicas) -> Json:
    """`desired` with another number of replicas for now, and a partition above them all."""
    sized = with_replicas(desired, replicas)
    if "rollingUpdate" not in sized["spec"]["updateStrategy"]:
        return sized
    return with_strategy(sized, UpdateStrategy.above_all(replicas.count))


def with_strategy(desired: Json, strategy: UpdateStrategy) -> Json:
    """`desired` with another update strategy."""
    return desired | {"spec": desired["spec"] | {"updateStrategy": strategy.spec}}


def create(ctx: ClusterContext, desired: Json) -> Object | None:
    """Create a StatefulSet; the one that has its name, read live, if it was only unseen.

    Raises OwnerGone, ApiError, TransportError.
    """
    there, made = make_or_find(ctx, STATEFUL_SETS, with_written_generation(desired))
    if not made:
        return there
    ctx.memory.made[there.metadata.name] = there.metadata.uid
    _note_admission(ctx, there)
    return None


def edit_by_others(ctx: ClusterContext, live: Object) -> ForeignEdit | None:
    """What others have changed in a StatefulSet; nothing where nobody has written it since this process has made it."""
    meta, settled = live.metadata, ctx.memory.settled
    is_as_made = meta.generation == 1 and meta.uid == ctx.memory.made.get(meta.name)
    if is_as_made or settled.holds(foreign_edit, live, {}):
        return None
    edit = foreign_edit(live.decode())
    if edit is None:
        settled.note(foreign_edit, live, {})
    return edit


def update(
    ctx: ClusterContext,
    desired: Json,
    live: Object,
    *,
    replicas: Replicas,
    strategy: UpdateStrategy,
    rewritten: Collection[str] = (),
    keeps_edits: bool = False,
) -> None:
    """Patch what differs in a StatefulSet; `desired` was given these replicas and this strategy.

    In the fields of the spec that are `rewritten` nothing stays but what is desired, whoever has put it there. With
    `keeps_edits` what others have changed in the pod template stays, and is theirs: to be undone later.
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
    noted = wanted if keeps_edits else with_written_generation(wanted, body, before)
    written = ctx.deps.applier.apply(STATEFUL_SETS, noted, live, applied=before, replaces=bool(rewritten))
    if written is not live and not keeps_edits:
        _note_admission(ctx, written)


def _note_admission(ctx: ClusterContext, written: Object) -> None:
    """Remember what admission has made of the pod template of an answer, so that nobody takes it for an edit."""
    made = admitted_template(written.decode())
    if made is None or written.metadata.annotations.get(ADMITTED_TEMPLATE) == made:
        return
    meta = written.metadata
    identity = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    # whatever has become of the StatefulSet meanwhile
    ctx.deps.applier.merge(STATEFUL_SETS, {"metadata": identity | {"annotations": {ADMITTED_TEMPLATE: made}}})


def _with_admitted_template(desired: Json, live: Json, before: Json) -> Json:
    """`desired` with the pod template that is there, if that is what admission has made of the one that is desired.

    Sent as we wrote it, it would restart pods for nothing once an admission webhook is silent or gone.
    """
    if not semantically_equal(before["spec"].get("template"), desired["spec"]["template"]):
        return desired
    return desired | {"spec": desired["spec"] | {"template": live["spec"]["template"]}}


def _require_evidence(live: Json, desired: Json, replicas: Replicas, strategy: UpdateStrategy) -> None:
    there, wanted = live["spec"], desired["spec"]
    name, fewer = desired["metadata"]["name"], there["replicas"] - wanted["replicas"]
    if fewer > 0 and (replicas.count != wanted["replicas"] or len(replicas.gone) < fewer):
        what = f"StatefulSet {name} would be scaled from {there['replicas']} to {wanted['replicas']} replicas"
        raise EvidenceMissing(f"{what} without evidence for each pod that is removed; use Replicas.lowered")
    reached = _reach(wanted)
    if reached >= min(_reach(there), wanted["replicas"]):
        return
    if strategy.spec != wanted["updateStrategy"] or not _may_restart(strategy, there):
        what = f"StatefulSet {name} would restart pods from ordinal {reached} up without evidence for that"
        raise EvidenceMissing(f"{what}; use UpdateStrategy.lowered")


def _may_restart(strategy: UpdateStrategy, there: Json) -> bool:
    return strategy.why is not None or (strategy.restarts_none and there["updateStrategy"]["type"] == ON_DELETE)


def _reach(spec: Json) -> int:
    return lowest_restarted(spec["updateStrategy"], int(spec["replicas"]))


def _rolling_update(partition: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def _require_constructor(maker: object, which: str) -> None:
    if maker is not _CONSTRUCTORS:
        raise TypeError(f"{which}: by those class methods")
