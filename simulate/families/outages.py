"""Every kind of outage of a component, and the surfaces that must show it (reliability.md O8).

`outage/pd.pending.all` keeps all pods of PD without a node for two minutes, `outage/tikv.lost-node.one` stops the
machine of one TiKV pod, `most` hits two of three. `simulate.judge.outages` checks what is shown meanwhile and a minute
after the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from apis.components import DM_CLUSTER, TIDB_CLUSTER, component_type
from kube.resources import PODS, SECRETS
from simulate.engine.certificates import secrets
from simulate.engine.components import asked_one_by_one
from simulate.engine.other_kinds import DM, sources
from simulate.engine.plan import Created, Deleted, Expires, Fault, InvalidPlan, Outage, Plan, World
from simulate.engine.worlds import CLUSTERS, NAME, NAMESPACE, replicas_of
from simulate.families.family import Family
from simulate.families.homes import Home, all_components, home_of

_BEGINS = 25.0
_LASTS = 120.0
_AFTERWARDS = 460.0
"""The maximum seconds in which the world recovers and surfaces are read."""

_PEER_PORTS: Mapping[str, int] = {"pd": 2380, "dm-master": 8291}
"""The peer ports of components that elect a leader."""


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that a plan hits: all of a component, the majority above its lowest ones, or the last one."""

    home: Home
    who: str

    @property
    def component(self) -> str:
        """The name of the component."""
        return self.home.component

    @property
    def count(self) -> int:
        """The number of the component's pods."""
        if self.home.is_of_dm:
            return int(self.home.section["replicas"])
        return replicas_of(self.home.cluster)[self.component]

    @property
    def pods(self) -> Sequence[str]:
        """Their names."""
        count = {"one": 1, "most": self.count // 2 + 1, "all": self.count}[self.who]
        ordinals = range(self.count - count, self.count)
        return [f"{self._cluster}-{self.component}-{ordinal}" for ordinal in ordinals]

    def of(self, component: str) -> str:
        """A glob of all pods of a component of the same cluster, for faults."""
        return f"{NAMESPACE}/{self._cluster}-{component}-*"

    @property
    def _cluster(self) -> str:
        return DM if self.home.is_of_dm else NAME

    @property
    def cluster(self) -> str:
        """The cluster, for faults."""
        return f"{NAMESPACE}/{self._cluster}"

    @property
    def begins(self) -> float:
        """The moment of the outage."""
        return self.home.begins_at + _BEGINS


Trouble = Callable[[Victims], Iterator[Fault]]


def _of_each(verb: str) -> Trouble:
    def faults(hit: Victims) -> Iterator[Fault]:
        for pod in hit.pods:
            yield _world(hit, verb, pod=f"{NAMESPACE}/{pod}")

    return faults


def _world(hit: Victims, verb: str, **arguments: object) -> World:
    return World(at=hit.begins, verb=verb, arguments=arguments, seconds=_LASTS)


def _gone(hit: Victims) -> Iterator[Fault]:
    for pod in hit.pods:
        yield Deleted(at=hit.begins + 0.1, target=f"{PODS}/{pod}")


def _pending(hit: Victims) -> Iterator[Fault]:
    yield from _of_each("pod_pending")(hit)
    yield from _gone(hit)


def _deleted(hit: Victims) -> Iterator[Fault]:
    """Delete the pods, without replacement because of an exhausted quota."""
    for pod in hit.pods:
        yield _world(hit, "creation_refused", resource=str(PODS), name=pod)
    yield from _gone(hit)


def _unreachable(hit: Victims) -> Iterator[Fault]:
    for pod in hit.pods:
        yield _world(hit, "network_cut", target=f"{NAMESPACE}/{pod}")


def _apart(hit: Victims) -> Iterator[Fault]:
    """Cut the members off from each other; clients reach all of them."""
    port = _PEER_PORTS[hit.component]
    for pod in hit.pods:
        yield _world(hit, "network_cut", target=f"{NAMESPACE}/{pod}", origin="*", port=port)


def _cut_off(hit: Victims) -> Iterator[Fault]:
    """Cut them off from PD or DM's masters, to which they report."""
    target = hit.of("dm-master" if hit.home.is_of_dm else "pd")
    for pod in hit.pods:
        yield _world(hit, "network_cut", target=target, origin=f"{NAMESPACE}/{pod}")


def _leaderless(hit: Victims) -> Iterator[Fault]:
    yield _world(hit, "pd_no_leader", cluster=hit.cluster)


def _expired(hit: Victims) -> Iterator[Fault]:
    # the certificate before the last is valid for some seconds
    yield Expires(at=hit.begins - _BEGINS + 4.0, secret=_secret(hit.component), seconds=_LASTS)


def _without_secret(hit: Victims) -> Iterator[Fault]:
    """Delete the Secret: running pods keep their mounts; the next one could not start."""
    secret = f"{SECRETS}/{_secret(hit.component)}"
    yield Deleted(at=hit.begins, target=secret)
    yield Created(at=hit.begins + _LASTS, target=secret)


def _secret(component: str) -> str:
    return f"{NAME}-{component}-cluster-secret"


@cache
def _secrets(home: Home) -> frozenset[str]:
    """The Secrets with certificates of a cluster."""
    return frozenset(secret["metadata"]["name"] for secret in secrets(CLUSTERS[home.cluster](), NAMESPACE))


_TROUBLES: Mapping[str, Trouble] = {
    "pending": _pending,
    "crashing": _of_each("pod_crash_loop"),
    "deleted": _deleted,
    "lost-node": _of_each("host_gone"),
    "disk-full": _of_each("pod_disk_full"),
    "unreachable": _unreachable,
    "apart": _apart,
    "cut-off": _cut_off,
    "leaderless": _leaderless,
    "expired": _expired,
    "no-secret": _without_secret,
}
_WHO = ("one", "most", "all")
_OF_CERTIFICATES = ("expired", "no-secret")


def _plan(rest: str) -> Plan:
    """The plan called `outage/<rest>`. Raises InvalidPlan."""
    component, trouble, who = (*rest.split("."), "", "", "")[:3]
    if component not in all_components() or trouble not in _TROUBLES or who not in _WHO:
        raise InvalidPlan(
            f"{rest!r} is no `COMPONENT.TROUBLE.WHO` of {', '.join(all_components())}; {', '.join(_TROUBLES)}; "
            f"{', '.join(_WHO)}"
        )
    if not _makes_sense(component, trouble, who):
        raise InvalidPlan(f"{rest!r}: there is nothing that could be seen, or nothing of the kind")
    hit = Victims(_home(component, trouble), who)
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=hit.home.cluster,
        budget=hit.begins + _LASTS + _AFTERWARDS,
        edits=hit.home.made,
        given=(sources(hit.home.begins_at - 10.0, "orders", "clients"),) if hit.home.is_of_dm else (),
        faults=tuple(_TROUBLES[trouble](hit)),
        reference=False,
        outage=Outage(
            component=component,
            begins=hit.begins,
            ends=hit.begins + _LASTS,
            reasons=tuple(_reasons(component, trouble, who)),
            shows=(component, trouble, who) not in _UNSEEN,
            secret=_secret(component) if trouble == "no-secret" else "",
        ),
    )


def _home(component: str, trouble: str) -> Home:
    """The smallest cluster with the component; with TLS if certificates are hit."""
    home = home_of(component)
    if trouble not in _OF_CERTIFICATES:
        return home
    return Home(component, f"{home.cluster}+tls" if f"{home.cluster}+tls" in CLUSTERS else "tls")


_UNSEEN = frozenset({*product(_PEER_PORTS, ("unreachable", "apart"), ("one",)), ("pump", "expired", "all")})
"""Outages that the operator cannot observe: another member, or PD, answers instead."""


def _makes_sense(component: str, trouble: str, who: str) -> bool:
    row = component_type(component)
    elects, reports_itself = component in _PEER_PORTS, row.of == TIDB_CLUSTER and asked_one_by_one(component)
    count = Victims(home_of(component), who).count
    if (who == "one" and count == 1) or (who == "most" and not (count > 2 and (elects or row.is_store))):
        return False
    match trouble:
        case "unreachable":
            # PD or DM's masters report all others
            sensible = who != "most" and (elects or reports_itself)
        case "apart":
            sensible = elects
        case "cut-off":
            # for these the operator knows PD's or a DM master's periodic observations
            sensible = row.is_store or (row.of == DM_CLUSTER and not elects)
        case "leaderless":
            sensible = elects and who == "all"
        case "expired" | "no-secret":
            sensible = who == "all" and _secret(component) in _secrets(_home(component, trouble))
        case _:
            sensible = True
    return sensible


def _reasons(component: str, trouble: str, who: str) -> Iterator[str]:
    """The reasons of Ready that name the cause; none if other effects decide."""
    outage = component_type(component).outage
    if outage is None or who == "one" or trouble in ("lost-node", *_OF_CERTIFICATES):
        return
    if trouble == "unreachable":
        yield outage.unreachable or outage.reason
    elif trouble in ("apart", "leaderless"):
        yield outage.leaderless
    else:
        yield outage.reason


def _plans() -> Iterator[Plan]:
    for component, trouble, who in product(all_components(), _TROUBLES, _WHO):
        if _makes_sense(component, trouble, who):
            yield _plan(f"{component}.{trouble}.{who}")


FAMILY = Family("outage", _plan, _plans)
