"""An edit that the API server refuses, and another event meanwhile (lifecycle.md 9, F21).

`refused/tikv.image.orphaned@8` requests an image that a policy rejects, and deletes the StatefulSet eight seconds later
without its pods. The edit stays for minutes: everything that ran before must exist and serve. Then it is undone; with
the suffix `+allowed` the policy is removed instead. In both cases everything is as in the spec.

`refused/pd.hook.crash-and-edit@40` has PD refuse for eleven minutes what a roll asks of it (lifecycle.md 7).
`refused/pd.leader.crash@400` has PD agree to it without doing it: after ten minutes the roll counts as stuck.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from msgspec.structs import replace

from kube.objects import Json
from kube.resources import PODS, SERVICES, STATEFUL_SETS
from sandbox.policies import APPROVED
from simulate.engine.components import REFUSED, Hook, profile
from simulate.engine.other_kinds import DM
from simulate.engine.plan import Crash, Deleted, Edit, Fault, Foreign, InvalidPlan, Plan, StuckRoll, World
from simulate.engine.trees import merged
from simulate.engine.worlds import NAME, NAMESPACE, ROOMY, replicas_of
from simulate.families.family import Family
from simulate.families.homes import Home, all_components, fields_of
from simulate.families.users_data import of_all_components

_BEGINS = 5.0
"""Seconds until the edit."""
_STANDS, _STANDS_LONG, _WAITS_LONG = 240.0, 660.0, 840.0
"""Seconds for which it stays; long enough that a roll counts as stuck, also one whose last pod alone has to wait."""
_REACHED = 120.0
"""Seconds in which a roll reaches its last pod."""
_HEALS = 400.0
_ALLOWED = "+allowed"

Step = Edit | Fault


@dataclass(frozen=True, slots=True)
class Subject:
    """A component whose edit is refused, in a cluster in which it may be scaled."""

    home: Home

    @property
    def stateful_set(self) -> str:
        """Its StatefulSet as plans name it."""
        return f"{STATEFUL_SETS}/{self.workload}"

    @property
    def workload(self) -> str:
        """The name of the StatefulSet."""
        return f"{DM if self.home.is_of_dm else NAME}-{self.home.component}"

    @property
    def replicas(self) -> int:
        """The number of pods in the spec."""
        return int(self.home.section["replicas"])


@dataclass(frozen=True, slots=True)
class Refusal:
    """A policy by name, and the edit of a component that it refuses.

    Without a policy, the component's servers refuse what a roll asks of them, or do not do it; see `Profile.hooks`.
    """

    policy: str
    edit: Callable[[Home], Json]


def _new_image(home: Home) -> Json:
    return {"version": profile(home.component).versions[1]}


def _new_configuration(home: Home) -> Json:
    return {"config": profile(home.component).config("warn")}


REFUSALS: Mapping[str, Refusal] = {
    "image": Refusal("signed-images", _new_image),
    "label": Refusal("no-teams", lambda _: {"labels": {"team": "a"}}),
    "configuration": Refusal("no-new-configuration", _new_configuration),
    "service": Refusal("no-load-balancers", lambda _: {"service": {"type": "LoadBalancer"}}),
    "unapproved": Refusal("approved", lambda _: {"annotations": {"roll": "1"}}),
    "away": Refusal("away", lambda _: {"annotations": {"roll": "1"}}),
    "quota": Refusal("quota-of-storage", lambda _: {"requests": {"storage": "2Gi"}}),
    REFUSED: Refusal("", _new_image),
    "leader": Refusal("", _new_image),
    "loading": Refusal("", _new_image),
    "tables": Refusal("", lambda home: _new_image(home) | {"gracefulShutdownTimeout": "30m"}),
}

_OF_STATEFUL_SETS = ("unapproved", "away")
"""Policies that forbid all changes of a StatefulSet, by any client."""


Event = Callable[[Subject], tuple[Step, ...]]


def _patched(patch: Callable[[Subject], Json]) -> Event:
    return lambda hit: (Foreign(at=0.0, target=hit.stateful_set, patch={"spec": patch(hit)}),)


def _template(annotations: Json) -> Event:
    return _patched(lambda _: {"template": {"metadata": {"annotations": annotations}}})


def _deleted(target: Callable[[Subject], str], propagation: str = "Background") -> Event:
    return lambda hit: (Deleted(at=0.0, target=target(hit), propagation=propagation),)  # type: ignore[arg-type]


def _merged(change: Callable[[Subject], Json]) -> Event:
    return lambda hit: (hit.home.merge(0.0, change(hit)),)


def _suspended(hit: Subject) -> tuple[Step, ...]:
    there, back = ({"suspendAction": {"suspendStatefulSet": each}} for each in (True, False))
    return hit.home.merge(0.0, there), hit.home.merge(60.0, back)


def _approved_and_scaled(hit: Subject) -> tuple[Step, ...]:
    """A user sets the policy's approval on the StatefulSet, and scales it."""
    (approved,) = _template({APPROVED: "yes"})(hit)
    return approved, hit.home.merge(20.0, {"replicas": hit.replicas + 1})


EVENTS: Mapping[str, Event] = {
    "nothing": lambda _: (),
    "crash": lambda _: (Crash(at=0.0),),
    "crash-and-edit": lambda hit: (Crash(at=0.0), hit.home.merge(200.0, {"annotations": {"roll": "2"}})),
    "scaled-by-hand": _patched(lambda hit: {"replicas": hit.replicas - 1}),
    "edited-by-hand": _template({"by": "hand"}),
    "approved-by-hand": _approved_and_scaled,
    "deleted": _deleted(lambda hit: hit.stateful_set),
    "orphaned": _deleted(lambda hit: hit.stateful_set, "Orphan"),
    "service-deleted": _deleted(lambda hit: f"{SERVICES}/{hit.workload}-peer"),
    "pod-deleted": _deleted(lambda hit: f"{PODS}/{hit.workload}-0"),
    "scaled-out": _merged(lambda hit: {"replicas": hit.replicas + 1}),
    "scaled-in": _merged(lambda hit: {"replicas": hit.replicas - 1}),
    "edited-again": _merged(lambda _: {"annotations": {"roll": "2"}}),
    "edited-before": _merged(lambda _: {"annotations": {"roll": "0"}}),
    "suspended": _suspended,
    "grown": _merged(lambda _: {"requests": {"storage": "2Gi"}}),
}
"""The other events, a moment after the edit or before it."""

_MOMENTS = (-3.0, 2.0, 40.0)
"""Seconds after the edit."""
_LATE = 400.0
"""Seconds after the edit in which a wait has become long, but not too long."""
_OF_WAITS = ("nothing", "crash")
"""The events that end no wait."""


def _plan(rest: str) -> Plan:
    """The plan called `refused/<rest>`. Raises InvalidPlan."""
    what, _, moment = rest.removesuffix(_ALLOWED).partition("@")
    component, refusal, event = (*what.split("."), "", "")[:3]
    if component not in _subjects() or refusal not in REFUSALS or event not in EVENTS or not _is_number(moment):
        raise InvalidPlan(
            f"{rest!r} is no `COMPONENT.REFUSAL.EVENT@SECONDS` of {', '.join(_subjects())}; {', '.join(REFUSALS)}; "
            f"{', '.join(EVENTS)}; seconds from the edit to the event"
        )
    hit, refused = _subjects()[component], REFUSALS[refusal]
    begins = hit.home.begins_at + _BEGINS
    hook = profile(component).hooks.get(refusal)
    if not (refused.policy or hook):
        raise InvalidPlan(f"{rest!r}: a roll of {component} asks no server for {refusal!r}")
    ends = begins + (_STANDS if refused.policy else _WAITS_LONG if hook and hook.names else _STANDS_LONG)
    allowed = rest.endswith(_ALLOWED)
    policy = _refused_by(hit, hook) if hook else _policy(hit, refused)
    edit = hit.home.merge(begins, refused.edit(hit.home))
    steps = [each.postponed(begins + float(moment)) for each in EVENTS[event](hit)]
    back = (
        [] if allowed else [hit.home.replace(ends, merged(hit.home.section, refused.edit(hit.home)), hit.home.section)]
    )
    if allowed:
        policy = replace(policy, seconds=ends - hit.home.begins_at)
    plan = Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=hit.home.cluster,
        budget=ends + _HEALS,
        edits=(*hit.home.made, edit, *(step for step in steps if isinstance(step, Edit)), *back),
        given=of_all_components(hit.home.cluster),
        faults=(policy, *(step for step in steps if not isinstance(step, Edit))),
        reference=False,
        serves_at=ends - 1.0 if _is_served(refusal, event) else 0.0,
        stuck=_stuck(hit, hook, begins, ends) if hook and hook.names else None,
    )
    return replace(plan, ends_beside={hit.home.target: "Done"}) if hit.home.is_of_dm else plan


def _policy(hit: Subject, refused: Refusal) -> World:
    """The policy that refuses the edit, for ever."""
    return World(at=hit.home.begins_at, verb="webhook", arguments={"name": refused.policy}, seconds=0.0)


def _refused_by(hit: Subject, hook: Hook) -> World:
    """Servers that refuse what a roll asks of them, or only pretend to do it, for ever."""
    target = f"{NAMESPACE}/{hit.workload.removesuffix(hit.home.component)}{hook.asks}-*"
    arguments = {"target": target, "method": hook.method, "path": hook.path}
    if not hook.names:
        return World(at=hit.home.begins_at, verb="server_refuses", arguments=arguments, seconds=0.0)
    answer = {"body": hook.body, "status": hook.status}
    return World(at=hit.home.begins_at, verb="server_pretends", arguments=arguments | answer, seconds=0.0)


def _stuck(hit: Subject, hook: Hook, begins: float, ends: float) -> StuckRoll:
    reached = begins + _REACHED
    return StuckRoll(component=hit.home.component, asked=begins, waits=reached, ends=ends, names=hook.names)


def _is_served(refusal: str, event: str) -> bool:
    """True if everything that the spec requires should serve while the edit is refused.

    A policy that forbids changes of a StatefulSet also prevents other pods and its complete deletion; and a StatefulSet
    whose pods are gone as well has no record of its template.
    """
    if not REFUSALS[refusal].policy:
        # a roll that waits is no complete cluster
        return False
    if refusal in _OF_STATEFUL_SETS:
        return event in ("nothing", "crash", "scaled-by-hand", "service-deleted", "pod-deleted", "edited-again")
    return event not in ("deleted", "suspended") or refusal in ("service", "quota")


def _subjects() -> Mapping[str, Subject]:
    return {component: Subject(_home(component)) for component in all_components()}


def _home(component: str) -> Home:
    if component in replicas_of(ROOMY):
        return Home(component, ROOMY)
    home = Home(component, ROOMY)
    return Home(component, "tiny" if home.is_of_dm else f"{ROOMY}+{home.part}")


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _plans() -> Iterator[Plan]:
    moments = (*_MOMENTS, _LATE)
    for component, refusal, event, moment, end in product(_subjects(), REFUSALS, EVENTS, moments, ("", _ALLOWED)):
        # under a policy that forbids all changes of a StatefulSet, nothing comes to its end
        if _makes_sense(component, refusal, event, moment, end) and (end or refusal not in _OF_STATEFUL_SETS):
            yield _plan(f"{component}.{refusal}.{event}@{moment:g}{end}")


def _makes_sense(component: str, refusal: str, event: str, moment: float, end: str) -> bool:
    section = _subjects()[component].home.section
    if refusal == "service" and "service.type" not in dict(fields_of(component)):
        return False
    if "storage" not in section.get("requests", {}) and (refusal == "quota" or event == "grown"):
        return False
    # half of two DM masters, or a single pod, must not be removed
    if event.startswith("scaled-") and (component == "dm-master" or section["replicas"] < 2):
        return False
    if not REFUSALS[refusal].policy:
        # what a server refuses it refuses for a time, whatever the edit is
        return bool(end) and _is_asked(component, refusal, section["replicas"], event, moment)
    if event == "crash-and-edit" or not _is_time(event, moment):
        return False
    return event != "approved-by-hand" or refusal == "unapproved"


def _is_asked(component: str, refusal: str, replicas: int, event: str, moment: float) -> bool:
    """True if a roll of the component sends the request that servers reject; a single pod has no successor."""
    hook = profile(component).hooks.get(refusal)
    if hook is None or (hook.names and replicas < 2):
        return False
    return _is_time(event, moment, is_wait=bool(hook.names))


def _is_time(event: str, moment: float, *, is_wait: bool = False) -> bool:
    if is_wait:
        return event in _OF_WAITS and moment == _LATE
    return moment == _MOMENTS[0] if event == "nothing" else moment != _LATE


FAMILY = Family("refused", _plan, _plans)
