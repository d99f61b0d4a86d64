"""What does not serve at all, and what the operator cannot ask: the findings that come before all others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from apis.components import component_names, component_type
from apis.tidbcluster import TidbClusterStatus
from cli.doctor.facts import Facts, name_of, pod_model
from cli.doctor.finding import Cause, Severity, Sign
from controllers.conditions import OBSERVED, READY
from kube.objects import Json, condition_of

_PATIENCE = timedelta(minutes=1)
"""For how long PD's pods and members come and go in a restart."""


def part_of(facts: Facts, component: str) -> Json:
    """The status of a component that is to run."""
    found: Json = facts.status.get(component) or {}
    return found if facts.spec.get(component) and found.get("phase") != "Suspend" else {}


def is_observed(component: str, part: Json) -> bool:
    """Whether the members in the status of a component are those of now: they are not while nobody can ask them."""
    observed = condition_of(part.get("conditions") or (), OBSERVED)
    return observed.get("status") != "False" and (bool(part.get("synced")) or not _says_synced(component))


def _says_synced(component: str) -> bool:
    """Whether a status of the component has `synced`, which is not written while it is false."""
    status = component_type(component).status(TidbClusterStatus())
    return status is not None and not status.is_current


@dataclass(frozen=True, slots=True)
class _Outage:
    """A reason of Ready for which nothing, or nothing of one component, serves."""

    reason: str
    means: str
    way_out: str


_BY_POD = "Get one of its pods Ready: the other findings say what they lack."

_OUTAGES = (
    _Outage(
        "PDQuorumLost",
        "Half of the PD members, or more, do not run: nothing can be written, and nothing be changed.",
        "Bring their pods back; the other findings say what they lack. If they are gone for good: docs/lost-quorum.md.",
    ),
    _Outage(
        "PDNoLeader",
        "The members of PD run, and elect no leader: the database cannot serve.",
        "Check that PD's pods reach each other (port 2380) and that their disks are not full; `kubectl logs` of them.",
    ),
    _Outage(
        "PDUnreachable",
        "The operator cannot reach PD, so nobody here knows whether the database serves.",
        "Allow the operator's namespace in the NetworkPolicies of the cluster; check DNS and proxy variables.",
    ),
    _Outage(
        "RegionsWithoutQuorum",
        "Regions have lost most of their replicas: what they hold can neither be read nor written.",
        "Bring the lost TiKV pods back with their volumes. If they are gone for good, restore a backup.",
    ),
    _Outage("NoTiDBServer", "No TiDB server answers: no client can connect. TiKV keeps the data.", _BY_POD),
    _Outage("NoTiProxyServer", "No TiProxy answers: clients that connect through it cannot.", _BY_POD),
    _Outage("NoTiCDCServer", "No TiCDC server answers: nothing is replicated, and changefeeds lag.", _BY_POD),
    _Outage("TiFlashDown", "No TiFlash store serves: queries that need it fail, or are slow.", _BY_POD),
)


def _reported(facts: Facts, reason: str) -> Iterator[str]:
    """The sentences in which the operator gives this reason for what is not Ready, once each."""
    parts = (part_of(facts, each).get("conditions") or () for each in component_names())
    said = [facts.condition(READY), *(condition_of(each, READY) for each in parts)]
    hits = (each for each in said if each.get("status") == "False" and each.get("reason") == reason)
    yield from dict.fromkeys(str(each.get("message", "")).partition("; ")[0] for each in hits)


def _of_operator(reason: str) -> Callable[[Facts], Iterator[Sign]]:
    def signs(facts: Facts) -> Iterator[Sign]:
        for message in _reported(facts, reason):
            yield Sign(f"TidbCluster {facts.name}", message, READY, reason)

    return signs


def _without_quorum(facts: Facts) -> Iterator[Sign]:
    """As the operator says, else as members and pods show: it may not run, or be older than this reason."""
    if said := list(_of_operator("PDQuorumLost")(facts)):
        yield from said
        return
    part = part_of(facts, "pd")
    members: Sequence[Json] = [*(part.get("members") or {}).values(), *(part.get("peerMembers") or {}).values()]
    sick = [each for each in members if _is_sick(facts, each, told=is_observed("pd", part))]
    if members and 2 * len(sick) >= len(members):
        named = ", ".join(sorted(str(each.get("name")) for each in sick))
        message = f"{len(sick)} of {len(members)} PD members are not healthy ({named}): the database cannot serve"
        yield Sign(f"TidbCluster {facts.name}", message, "status.pd.members", f"{len(members) - len(sick)} healthy")


def _is_sick(facts: Facts, member: Json, *, told: bool) -> bool:
    """Whether a member is lost: as PD has `told`, or, while PD tells nothing, as its pod shows."""
    if told:
        return not member.get("health") and facts.lasts(member.get("lastTransitionTime"), _PATIENCE)
    named = str(member.get("name", "")).partition(".")[0]
    pods = [each for each in facts.pods if name_of(each) == named]
    return all(_has_been_unready(facts, each) for each in pods)


def _has_been_unready(facts: Facts, pod: Json) -> bool:
    """A pod that got no node has no condition Ready, and has not been Ready since it was created."""
    model = pod_model(pod)
    since = model.ready_since or pod["metadata"].get("creationTimestamp")
    return not model.is_ready and facts.lasts(since, _PATIENCE)


def _unobserved(facts: Facts) -> Iterator[Sign]:
    """What the operator has not been able to ask; one that runs for the first time has nothing to show yet."""
    for component in component_names():
        part = part_of(facts, component)
        observed = condition_of(part.get("conditions") or (), OBSERVED)
        if observed.get("status") == "False":
            since = facts.text_of_age(observed.get("lastTransitionTime"))
            said = " ".join(filter(None, (f"the operator has not been able to ask {component}", since)))
            yield Sign(
                f"TidbCluster {facts.name}",
                f"{said}: {observed.get('message', '')}",
                f"status.{component}.conditions",
                str(observed.get("reason", "")),
            )


CAUSES = (
    *(
        Cause(
            each.reason,
            each.means,
            each.way_out,
            _without_quorum if each.reason == "PDQuorumLost" else _of_operator(each.reason),
        )
        for each in _OUTAGES
    ),
    Cause(
        "NotObserved",
        "The operator cannot ask the members of a component; what the status says of them is what it saw last.",
        "Do as the finding on the component, or on PD, asks. Else check NetworkPolicies between operator and pods.",
        _unobserved,
        Severity.WARNING,
    ),
)
"""The first in the table, as what does not serve is what a user wants to know first."""
