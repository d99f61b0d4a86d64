"""A plan: the users' edits and the faults with their times, and the time to recover. One YAML file (reliability.md 2).

    name: tikv-scale-out/crash-after-3
    world: steady                 # a saved Ready world, or `empty`: then `cluster` is created at second 0
    cluster: small                # see `simulate.engine.worlds`
    seed: 1
    budget: 300                   # seconds after which the cluster must be at rest
    edits:
      - {at: 1, spec: {tikv: {replicas: 4}}}
    faults:
      - {fault: crash, write: 3, when: after}

Every edit and fault has a trigger.

- `at`: seconds from the start.
- `write`: the k-th mutating request of the operator (to Kubernetes or PD, without events), `when: before` or `after`
  it. With a glob in `of`, e.g. `PATCH statefulsets.apps basic-tikv`, only matching writes count, so that other writes
  do not move the event.
- `once`: the first time that an object exists (`pods/basic-pd-3`), or that a field of one is set
  (`tidbclusters.pingcap.com/basic/status/pd/failureMembers`), and `later` seconds after it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias
from zlib import crc32

import msgspec
import yaml

from kube.objects import Json


class InvalidPlan(Exception):
    """Raised for an invalid plan; the message names the field and its value."""


When: TypeAlias = Literal["before", "after"]


class _Triggered(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    at: float | None = None
    write: int | None = None
    of: str = ""
    when: When = "after"
    once: str = ""
    later: float = 0.0

    def __post_init__(self) -> None:
        if (self.at is not None) + (self.write is not None) + bool(self.once) != 1:
            given = f"at={self.at}, write={self.write} and once={self.once!r}"
            raise ValueError(f"exactly one of `at`, `write` and `once` says when, not {given}")
        if self.of and self.write is None:
            raise ValueError(f"`of` {self.of!r} says of which writes `write` is the number, and there is none")

    def postponed(self, seconds: float) -> Self:
        """The same event, postponed; one that waits for a write or a condition is unchanged."""
        return self if self.at is None else msgspec.structs.replace(self, at=self.at + seconds)


class Edit(_Triggered, frozen=True, kw_only=True):
    """A user's edit (FP10): merge into the spec or annotations of the cluster, delete an object, or create one.

    `target` is the object if it is not the cluster; it and `delete` are `plural.group/name`, e.g. `pods/basic-tikv-0`.
    With a `body`, `target` is created. `target` and `delete` are in `namespace`, by default the cluster's.
    `create` is a cluster of `simulate.engine.worlds` by name: the deleted one again. `neighbour` is another cluster of
    the plan whose spec or annotations are changed.
    """

    spec: Json = msgspec.field(default_factory=dict)
    annotations: Json = msgspec.field(default_factory=dict)
    target: str = ""
    body: Json = msgspec.field(default_factory=dict)
    delete: str = ""
    namespace: str = ""
    create: str = ""
    neighbour: str = ""

    @property
    def does_more(self) -> bool:
        """True if it does more than change the cluster's spec."""
        return bool(self.annotations or self.target or self.delete or self.create or self.neighbour)


class Crash(_Triggered, frozen=True, kw_only=True, tag="crash", tag_field="fault"):
    """The operator's process ends; a new one starts `seconds` later (FP1)."""

    seconds: float = 1.0


class Permits(_Triggered, frozen=True, kw_only=True, tag="permits", tag_field="fault"):
    """The administrator restarts the operator with another value of `-cross-namespace-references` (FP10)."""

    flag: str
    seconds: float = 1.0


class Feature(_Triggered, frozen=True, kw_only=True, tag="feature", tag_field="fault"):
    """The administrator restarts the operator with the feature AdvancedStatefulSet on or off (FP10)."""

    on: bool
    seconds: float = 1.0


class Newer(_Triggered, frozen=True, kw_only=True, tag="newer", tag_field="fault"):
    """The administrator installs an operator that gives every pod template one more label (FP10)."""

    seconds: float = 1.0


class Refused(_Triggered, frozen=True, kw_only=True, tag="refused", tag_field="fault"):
    """One write is refused with an error (FP4)."""

    code: int = 500
    retry_after: int | None = None


class Denied(_Triggered, frozen=True, kw_only=True, tag="denied", tag_field="fault"):
    """From one write on, similar ones are forbidden for some time, as by an admission webhook (FP4)."""

    seconds: float = 60.0


class Lost(_Triggered, frozen=True, kw_only=True, tag="lost", tag_field="fault"):
    """One write gets no answer: `after` it took effect, or `before` it arrived (FP4)."""


class Trouble(_Triggered, frozen=True, kw_only=True, tag="trouble", tag_field="fault"):
    """For some time a share of the operator's requests fails (FP4, FP5). `code` 0: no answer, after the request."""

    percent: int = 30
    code: int = 500
    retry_after: int | None = None
    port: Literal["kubernetes", "data plane"] = "kubernetes"
    seconds: float = 60.0


class Stale(_Triggered, frozen=True, kw_only=True, tag="stale", tag_field="fault"):
    """Caches show nothing new for some time, then every missed change (FP2). Empty: all caches."""

    caches: tuple[str, ...] = ()
    seconds: float = 30.0


class Hidden(_Triggered, frozen=True, kw_only=True, tag="hidden", tag_field="fault"):
    """Caches lose their watch for some time, then list: intermediate states are never seen (FP3, FP12)."""

    caches: tuple[str, ...] = ()
    seconds: float = 30.0


class Emptied(_Triggered, frozen=True, kw_only=True, tag="emptied", tag_field="fault"):
    """Caches get a list without items, and see nothing for some time; then they list again (R15)."""

    caches: tuple[str, ...] = ()
    seconds: float = 60.0


class TimeTravel(_Triggered, frozen=True, kw_only=True, tag="time-travel", tag_field="fault"):
    """The operator restarts with the view before its `back`-th last write (FP2)."""

    back: int = 1
    seconds: float = 30.0


class Second(_Triggered, frozen=True, kw_only=True, tag="second", tag_field="fault"):
    """A second operator works at the same time (FP9)."""

    seconds: float = 60.0


class Jump(_Triggered, frozen=True, kw_only=True, tag="jump", tag_field="fault"):
    """The time of day jumps by `seconds`, forward or back (FP8): everywhere, or on the `operator`'s machine alone."""

    seconds: float = 3600.0
    whose: Literal["all", "operator"] = "all"


class Foreign(_Triggered, frozen=True, kw_only=True, tag="foreign", tag_field="fault"):
    """Another controller merges something into an object, `plural.group/name`, or its `subresource` (FP11)."""

    target: str
    patch: Json
    subresource: str = ""


class Deleted(_Triggered, frozen=True, kw_only=True, tag="deleted", tag_field="fault"):
    """Another deletes an object, `plural.group/name`, with a `propagation` (empty: the default of its kind)."""

    target: str
    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""


class Created(_Triggered, frozen=True, kw_only=True, tag="created", tag_field="fault"):
    """Another client creates an object, `plural.group/name`, from a `body` without kind and name.

    An empty body restores a deleted object, without its status. `owner` is another object, of the same form, that
    controls it.
    """

    target: str
    body: Json = msgspec.field(default_factory=dict)
    owner: str = ""


class Insists(_Triggered, frozen=True, kw_only=True, tag="insists", tag_field="fault"):
    """Another client merges a patch into an object `plural.group/name`, and repeats it each time that it is undone.

    With an empty `patch` it deletes the object whenever it exists. It gives up after `seconds`.
    """

    target: str
    patch: Json = msgspec.field(default_factory=dict)
    subresource: str = ""
    seconds: float = 240.0


class Expires(_Triggered, frozen=True, kw_only=True, tag="expires", tag_field="fault"):
    """A certificate of the cluster, in the named Secret, expires; it is renewed `seconds` later."""

    secret: str
    seconds: float = 60.0


class World(_Triggered, frozen=True, kw_only=True, tag="world", tag_field="fault"):
    """A method of `sandbox.faults.WorldFaults` with its arguments (FP5-FP7, FP12), healed after `seconds`.

    `seconds` 0 never heals it. `if_there`: no error if its target does not exist.
    """

    verb: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    seconds: float = 60.0
    if_there: bool = False


Fault: TypeAlias = (
    Crash
    | Permits
    | Feature
    | Newer
    | Refused
    | Denied
    | Lost
    | Trouble
    | Stale
    | Hidden
    | Emptied
    | TimeTravel
    | Second
    | Jump
    | Foreign
    | Deleted
    | Created
    | Insists
    | Expires
    | World
)


def reasons(ends: str | tuple[str, ...]) -> tuple[str, ...]:
    """The allowed final reasons of Progressing, as a tuple."""
    return (ends,) if isinstance(ends, str) else ends


DELETED = "Deleted"
"""The end of a plan that deletes its cluster."""

EVICTION = {"name": "evict-leader-scheduler", "store_id": "{store}"}
"""The path and body with which `pd_ctl` lets PD evict the leaders of a pod."""


def evicted_by_hand(fault: Fault) -> str:
    """The pod whose leaders an administrator lets PD evict; empty for any other event."""
    if not isinstance(fault, World) or fault.verb != "pd_ctl" or fault.arguments.get("body") != EVICTION:
        return ""
    return str(fault.arguments["pod"])


Hand: TypeAlias = Foreign | Deleted | Created
"""Actions of other clients on the objects of a cluster."""


class Outage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outage that every surface must show of a `component` between two seconds of the plan.

    `reasons` are the allowed reasons of Ready, any if empty. `shows`: Ready can show it at all. If a `secret` is
    missing, the pods serve on: CertificatesValid names it.
    """

    component: str
    begins: float
    ends: float
    reasons: tuple[str, ...] = ()
    shows: bool = True
    secret: str = ""


class StuckRoll(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A roll of a `component` that must be named as stuck.

    Seconds of the plan: `asked` when the roll begins, `waits` from when it waits at the latest, `ends` when that is
    over. `names` is a part of the sentence.
    """

    component: str
    asked: float
    waits: float
    ends: float
    names: str


class Lying(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The seconds of a plan in which servers lie.

    `authority`: the liars are the whole of PD or its leader, to which its followers pass requests on.
    """

    begins: float
    ends: float
    authority: bool


class CrossReference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How an object of another namespace that refers into the cluster's must end.

    `source` is the object, `plural.group/name` in `namespace`. `shows`: objects of its namespace hold a certificate or
    a configuration of the cluster's namespace; None allows both. `waits`: its status names the way to a permission.
    `serves_from`: the seconds from which its pods must run on, none replaced; 0 disables the check.
    """

    source: str
    namespace: str
    shows: bool | None
    waits: bool
    serves_from: float = 0.0


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One plan; the module describes its form.

    - `given`: faults that also happen in the reference run, because the plan is about them.
    - `reference`: compare the end with the same plan without faults (O1, O2).
    - `ends`: the reason, or the allowed reasons, of the Progressing condition in which the cluster is at rest. Any
      other than Done names a step for the user; `Deleted` means that the cluster no longer exists.
    - `silent_after`: seconds after which only the status may be written; 0 allows other writes.
    - `conflicts`: texts that the message of the Progressing condition may contain instead of the cluster being at rest.
    - `theirs`: paths of the end state (`simulate.judge.end_state`) that other clients may decide, with everything below
      them, or globs that end in `*`.
    - `ends_beside`: the allowed final reasons of other kinds (`simulate.engine.other_kinds`) by `plural.group/name`:
      one reason, several, or `*` for any.
    - `neighbours`: further clusters of `simulate.engine.worlds`, by `namespace/name`; `joined` ones join the cluster
      with their own PD, or use its. All are checked, and must be at rest in the end.
    - `interleaved`: the loops of an operator take turns at every port call; the loops of two operators always do.
    - `awaited`: the conditions that events wait for must come true.
    - `resyncs`: informers resync; otherwise only events and timers requeue an object.
    - `serves_at`: seconds at which the clusters must be Ready with all their objects; 0 disables the check.
    - `outage`: what surfaces must show meanwhile (`simulate.judge.outages`).
    - `stuck`: a roll that waits for ever must be named (`simulate.judge.stuck_rolls`).
    - `fulfilled`: what is not in StatefulSets is judged at the end, too (`simulate.judge.fulfilled`).
    - `lying`: servers lie meanwhile, which limits what counts as a violation (`simulate.judge.lies`).
    - `across`: the end of an object that refers into the cluster's namespace (`simulate.judge.cross_references`).
    """

    name: str
    world: Literal["steady", "empty"] = "steady"
    cluster: str = "small"
    seed: int = 1
    budget: float = 300.0
    edits: tuple[Edit, ...] = ()
    given: tuple[Fault, ...] = ()
    faults: tuple[Fault, ...] = ()
    reference: bool = True
    ends: str | tuple[str, ...] = "Done"
    silent_after: float = 0.0
    conflicts: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    ends_beside: Mapping[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    neighbours: dict[str, str] = msgspec.field(default_factory=dict)
    joined: tuple[str, ...] = ()
    interleaved: bool = False
    awaited: bool = True
    resyncs: bool = True
    serves_at: float = 0.0
    outage: Outage | None = None
    across: CrossReference | None = None
    lying: Lying | None = None
    stuck: StuckRoll | None = None
    fulfilled: bool = False

    @property
    def ends_done(self) -> bool:
        """True if nothing may be left to do or report."""
        return self.ends == "Done"

    @property
    def ends_in(self) -> tuple[str, ...]:
        """The reasons in which it may be at rest."""
        return reasons(self.ends)

    @property
    def rechecks(self) -> bool:
        """True for one plan in four, by its name: the operator decides again although no input has changed, and two
        results are a violation. In the other plans it keeps decisions, as in production.
        """
        return crc32(self.name.encode()) % 4 == 0

    @property
    def is_interleaved(self) -> bool:
        """True if there are several actors to interleave."""
        return self.interleaved or any(isinstance(each, Second) for each in (*self.given, *self.faults))

    @property
    def has_hands(self) -> bool:
        """True if other clients act on objects."""
        return any(isinstance(each, Hand | Insists) for each in (*self.given, *self.faults))

    def without_faults(self) -> "Plan":
        """The plan of the reference run."""
        name = f"{self.name} (reference)"
        return msgspec.structs.replace(self, name=name, faults=(), seed=1, ends="Done", conflicts=(), theirs=())

    @property
    def workload(self) -> str:
        """The key of plans with the same reference."""
        beside = [self.neighbours, self.joined]
        return msgspec.json.encode([self.world, self.cluster, self.budget, self.edits, self.given, beside]).decode()

    @property
    def events(self) -> Iterator[Edit | Fault]:
        """Edits, then what is given, then faults."""
        yield from self.edits
        yield from self.given
        yield from self.faults


def parse(text: str) -> Plan:
    """Read a plan. Raises InvalidPlan."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidPlan(f"not YAML: {error}") from error
    try:
        return msgspec.convert(tree, Plan)
    except msgspec.ValidationError as error:
        raise InvalidPlan(f"{error}{_value_at(tree, str(error))}") from error


def load(path: Path) -> Plan:
    """Read a plan from a file. Raises InvalidPlan, OSError."""
    return parse(path.read_text(encoding="utf-8"))


def dump(plan: Plan) -> str:
    """The plan as YAML."""
    return yaml.safe_dump(msgspec.to_builtins(plan), sort_keys=False, allow_unicode=True)


def _value_at(tree: Any, message: str) -> str:
    """The value at the path that msgspec names after a `$`."""
    _, found, path = message.rpartition("`$")
    value = tree
    for step in path.rstrip("`").replace("[", ".").replace("]", "").split("."):
        if step and isinstance(value, list):
            value = value[int(step)]
        elif step and isinstance(value, dict):
            value = value.get(step)
    return f": {value!r}" if found else f": {tree!r}"
