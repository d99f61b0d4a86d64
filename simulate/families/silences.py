"""A silent server, and an edit meanwhile (docs/rules/silence.md; lifecycle.md F1, I9).

`silence/pd-3.node+quorum.broken-image`: a node is cut off from the API server while its PD serves on, the operator
reaches no PD, and a user requests an image that no registry has. The world loses nothing, so each plan ends converged
once everything answers again, and members that voted and served meanwhile still do.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from msgspec.structs import replace

from simulate.engine.components import profile
from simulate.engine.plan import Edit, Fault, InvalidPlan, Plan, Stale, World
from simulate.engine.worlds import NAMESPACE, SINGLE_PD
from simulate.families.family import Family
from simulate.families.loss_and_edit import CHANGES, SUBJECTS, Subject, asked_anyway, changed, during, of_pod

_ALONE = "pd-1"
"""The only member, with which the whole database is silent."""
_SUBJECTS: Mapping[str, Subject] = {
    _ALONE: Subject("pd", 1, SINGLE_PD),
    **{
        name: SUBJECTS[name]
        for name in ("pd-3", "pd-slots", "tikv-3", "tikv-4", "tiflash-3", "tidb-2", "dm-master-3", "dm-worker-3")
    },
}
_LASTS = 240.0
"""Seconds of silence; Kubernetes deletes the pods of a node that is cut off for five minutes."""
_CHANGED_AT = 90.0
"""Seconds after which Kubernetes has noticed as well."""
_TAKEN_BACK_AT = 420.0
"""Seconds after which the user has had time to notice a mistake."""
_A_MINUTE = 60.0

Silent = Callable[[Subject], tuple[Fault, ...]]


def _cut(target: Callable[[Subject], str]) -> Silent:
    """Cut the operator off from these pods."""
    return lambda hit: (
        World(at=1.0, verb="network_cut", arguments={"target": f"{NAMESPACE}/{target(hit)}"}, seconds=_LASTS),
    )


def _quorum(hit: Subject, ordinals: str = "*") -> str:
    """The pods that know the membership: PD, or the masters of DM."""
    quorum = "dm-master" if hit.home.is_of_dm else "pd"
    return f"{hit.pod(0).removesuffix(f'-{hit.component}-0')}-{quorum}-{ordinals}"


def _node(hit: Subject) -> tuple[Fault, ...]:
    return (replace(of_pod("host_cut_off", hit, 0), seconds=_LASTS),)


def _slow(hit: Subject) -> tuple[Fault, ...]:
    arguments = {"seconds": 10, "target": f"{NAMESPACE}/{_quorum(hit)}"}
    return (World(at=1.0, verb="network_slow", arguments=arguments, seconds=_LASTS),)


SILENCES: Mapping[str, Silent] = {
    "quorum": _cut(_quorum),
    "slow": _slow,
    "half": _cut(lambda hit: _quorum(hit, "[23]" if hit.slots else "[12]")),
    "operator": _cut(lambda _: "*"),
    "node": _node,
    "node+quorum": lambda hit: (*_node(hit), *_cut(_quorum)(hit)),
    "caches": lambda _: (Stale(at=_CHANGED_AT - 1.0, seconds=_A_MINUTE),),
}
"""Temporary silences."""


def _broken_image(hit: Subject) -> tuple[Edit, Edit]:
    old = profile(hit.component).versions[0]
    return hit.home.merge(0.0, {"version": "v99.9.9"}), hit.home.merge(_TAKEN_BACK_AT - _CHANGED_AT, {"version": old})


def _pod(hit: Subject) -> str:
    """The pod that a user deletes or commands, as plans name it; if possible, one whose node is not cut off."""
    return f"pods/{hit.pod(min(1, hit.replicas - 1))}"


def _commanded(hit: Subject) -> tuple[Edit, ...]:
    """The command that restarts a pod."""
    commands = [(key, value) for key, value in profile(hit.component).commands if value == "delete-pod"]
    return tuple(Edit(at=0.0, target=_pod(hit), annotations=dict([command])) for command in commands)


_OWN_CHANGES: Mapping[str, Callable[[Subject], tuple[Edit | Fault, ...]]] = {
    "broken-image": _broken_image,
    "pod-deleted": lambda hit: (Edit(at=0.0, delete=_pod(hit)),),
    "commanded": _commanded,
}
_CHANGES = (*_OWN_CHANGES, "image", "scale-in", "scale-out", "suspend", "hand-deleted")


def _plan(rest: str) -> Plan:
    """The plan called `silence/<rest>`. Raises InvalidPlan."""
    subject, silence, change = (*rest.split("."), "", "")[:3]
    if subject not in _SUBJECTS or silence not in SILENCES or change not in _CHANGES:
        raise InvalidPlan(
            f"{rest!r} is no `SUBJECT.SILENCE.CHANGE` of {', '.join(_SUBJECTS)}; {', '.join(SILENCES)}; "
            f"{', '.join(_CHANGES)}"
        )
    hit = _SUBJECTS[subject]
    if change in CHANGES:
        events = changed(hit, change, _CHANGED_AT)
    else:
        events = [each.postponed(hit.home.begins_at + _CHANGED_AT) for each in _OWN_CHANGES[change](hit)]
    ends = tuple(asked_anyway(subject, change))
    return during(f"{FAMILY.name}/{rest}", hit, SILENCES[silence](hit), events, ends)


def _plans() -> Iterator[Plan]:
    for subject, silence, change in product(_SUBJECTS, SILENCES, _CHANGES):
        if change == "commanded" and not _commanded(_SUBJECTS[subject]):
            continue
        # a single member has no half, and may not be scaled in
        if subject != _ALONE or (silence != "half" and change != "scale-in"):
            yield _plan(f"{subject}.{silence}.{change}")


FAMILY = Family("silence", _plan, _plans)
