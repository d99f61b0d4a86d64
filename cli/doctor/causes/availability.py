"""Outages, and members that the operator cannot observe: the findings before all others."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from apis.cluster import OBSERVED
from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import DM_CLUSTER, component_names, component_type, component_types, status_section
from apis.dmcluster import DMClusterStatus
from apis.tidbcluster import TidbClusterStatus
from cli.doctor.facts import Facts, name_of, pod_model
from cli.doctor.finding import Cause, Severity, Sign
from cli.reasons.registry import REASONS
from controllers.conditions import READY
from kube.objects import Json, condition_of
from member.availability import BAD_TLS, NO_PD, NO_SUCH_CLUSTER

_QUORUM_LOST = "PDQuorumLost"

_PATIENCE = timedelta(minutes=1)
"""How long PD's pods and members may be away during a restart."""
_PATIENCE_OF_ASKING = timedelta(seconds=30)
"""How long members may be silent while a component starts or its pods are replaced."""


def part_of(facts: Facts, component: str) -> Json:
    """The status of a component that should run."""
    if facts.kind == DM_CLUSTER:
        component = component.removeprefix("dm-")
    if not _is_wanted(facts.spec, component):
        return {}
    found = status_section(facts.status, component)
    return found if found.get("phase") != "Suspend" else {}


def _is_wanted(spec: Json, component: str) -> bool:
    """True if a spec has a component: by its own field, as a microservice of PD by name, or as a part of TiCI."""
    if any(each.get("name") == component for each in spec.get("pdms") or ()):
        return True
    whole, _, part = component.partition("-")
    return bool((spec.get(whole) or {}).get(part) if part else spec.get(whole))


def is_observed(component: str, part: Json) -> bool:
    """True if the members in a component's status are current."""
    observed = condition_of(part.get("conditions") or (), OBSERVED)
    return observed.get("status") != "False" and (bool(part.get("synced")) or not _says_synced(component))


def _says_synced(component: str) -> bool:
    """True if `synced`, which is omitted while false, is about observing the members.

    For servers that report their own state it means that all are healthy.
    """
    row = component_type(component)
    status = row.status(DMClusterStatus() if row.of == DM_CLUSTER else TidbClusterStatus())
    return status is not None and status.servers is None and not status.is_current


def _outages() -> Iterator[str]:
    """The reasons for which a cluster, or a component of it, is out of service."""
    for row in (each for kind in CLUSTER_MODELS for each in component_types(kind)):
        if row.outage:
            yield from filter(None, (row.outage.reason, row.outage.leaderless, row.outage.unreachable))
    yield from (NO_SUCH_CLUSTER, NO_PD, BAD_TLS)


def _reported(facts: Facts, reason: str) -> Iterator[str]:
    """The operator's sentences with this reason, without duplicates."""
    parts = (part_of(facts, name).get("conditions") or () for name in component_names(of=facts.kind))
    conditions = [facts.condition(READY), *(condition_of(part, READY) for part in parts)]
    hits = (
        condition
        for condition in conditions
        if condition.get("status") == "False" and condition.get("reason") == reason
    )
    yield from dict.fromkeys(str(each.get("message", "")).partition("; ")[0] for each in hits)


def _of_operator(reason: str) -> Callable[[Facts], Iterator[Sign]]:
    def signs(facts: Facts) -> Iterator[Sign]:
        for message in _reported(facts, reason):
            yield Sign(facts.title, message, READY, reason)

    return signs


def _without_quorum(facts: Facts) -> Iterator[Sign]:
    """A lost quorum as the operator reports it, else as members and pods show it: the operator may be down
    or too old.
    """
    if signs := list(_of_operator(_QUORUM_LOST)(facts)):
        yield from signs
        return
    part = part_of(facts, "pd")
    members: Sequence[Json] = [*(part.get("members") or {}).values(), *(part.get("peerMembers") or {}).values()]
    sick = [member for member in members if _is_sick(facts, member, reported=is_observed("pd", part))]
    if members and 2 * len(sick) >= len(members):
        named = ", ".join(sorted(str(each.get("name")) for each in sick))
        message = f"{len(sick)} of {len(members)} PD members are not healthy ({named}): the database cannot serve"
        yield Sign(facts.title, message, "status.pd.members", f"{len(members) - len(sick)} healthy")


def _is_sick(facts: Facts, member: Json, *, reported: bool) -> bool:
    """True if a member is lost: according to PD's report (`reported`), or its pod while PD is silent."""
    if reported:
        return not member.get("health") and facts.lasts(member.get("lastTransitionTime"), _PATIENCE)
    named = str(member.get("name", "")).partition(".")[0]
    pods = [pod for pod in facts.pods if name_of(pod) == named]
    return all(_has_been_unready(facts, pod) for pod in pods)


def _has_been_unready(facts: Facts, pod: Json) -> bool:
    """A pod without a node has no condition Ready, and has been unready since its creation."""
    model = pod_model(pod)
    since = model.ready_since or pod["metadata"].get("creationTimestamp")
    return not model.is_ready and facts.lasts(since, _PATIENCE)


def _unobserved(facts: Facts) -> Iterator[Sign]:
    """Failed observations of the operator; a new cluster has none yet."""
    for component in component_names(of=facts.kind):
        part = part_of(facts, component)
        observed = condition_of(part.get("conditions") or (), OBSERVED)
        since = observed.get("lastTransitionTime")
        if observed.get("status") == "False" and facts.lasts(since, _PATIENCE_OF_ASKING):
            age = facts.text_of_age(since)
            silence = " ".join(filter(None, (f"the operator has not been able to ask {component}", age)))
            yield Sign(
                facts.title,
                f"{silence}: {observed.get('message', '')}",
                f"status.{component}.conditions",
                str(observed.get("reason", "")),
            )


def _cause(reason: str) -> Cause:
    signs = _without_quorum if reason == _QUORUM_LOST else _of_operator(reason)
    return Cause(reason, REASONS[reason].you, signs)


CAUSES = (
    *map(_cause, dict.fromkeys(_outages())),
    Cause(
        "NotObserved",
        "Do as the finding on the component, or on PD, asks. Else check NetworkPolicies between operator and pods.",
        _unobserved,
        Severity.WARNING,
    ),
)
"""First in the table: users must see an outage first."""
