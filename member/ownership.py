"""The assignment of PD's members and stores to the pods of this cluster (lifecycle.md 4.1, F24, F31).

An address that looks like one of this cluster's pods, but cannot be parsed, rules out every conclusion: about absent
members, and about pods that may go or must stay.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from apis.shared import PDMember
from apis.tidbcluster import TidbCluster
from dataplane.addresses import Stranger, shown_url
from dataplane.errors import AddressNotUnderstood
from dataplane.pd import Health, Member, Store
from member.naming import address_book, member_name
from member.outcome import Failed, Outcome
from ports.foreign_text import shortened

_STRANGERS = frozenset(Stranger)

M = TypeVar("M", Member, Health, PDMember)
S = TypeVar("S", bound=Store)


def member_owner(tc: TidbCluster, member: Member | Health | PDMember) -> int | Stranger:
    """The ordinal of a member's pod: from its URLs or, if they show nothing, from its name."""
    urls = _urls(member)
    owners = set(map(partial(address_book(tc).owner_of, "pd"), urls))
    ordinals = owners - _STRANGERS
    if len(ordinals) == 1:
        return ordinals.pop()
    if ordinals or Stranger.UNCLEAR in owners or not (urls or member.name):
        return Stranger.UNCLEAR
    elsewhere = not member.name or any(".svc" in url for url in urls)
    return Stranger.PEER if elsewhere else _named_like(tc, member.name)


def own_member(tc: TidbCluster, members: Iterable[M], ordinal: int) -> M | None:
    """The member of a pod; None if it has none."""
    return members_by_pod(tc, members).get(ordinal)


def members_by_pod(tc: TidbCluster, members: Iterable[M]) -> Mapping[int | Stranger, M]:
    """The first member of each pod, by ordinal; also the first of strangers."""
    found: dict[int | Stranger, M] = {}
    for member in members:
        found.setdefault(member_owner(tc, member), member)
    return found


def stores_by_pod(tc: TidbCluster, component: str, stores: Iterable[S]) -> Mapping[int | Stranger, Sequence[S]]:
    """The stores of each pod, by ordinal, and the stores of peers; stores of TiFlash never count as TiKV's.

    Several stores may have one pod's address. Raises AddressNotUnderstood for a store that may belong to this cluster.
    """
    book, owned = address_book(tc), defaultdict[int | Stranger, list[S]](list)
    for store in _of(component, stores):
        owner = book.owner_of(component, store.address)
        if owner is Stranger.UNCLEAR:
            address = shortened(store.address) or "no address"
            raise AddressNotUnderstood(f"PD reports store {store.id} at {address}, {_LOOKS_OWN}")
        owned[owner].append(store)
    return owned


def require_understood_members(tc: TidbCluster, members: Iterable[Member | Health]) -> None:
    """Raise AddressNotUnderstood for a member that may belong to this cluster, and for two members of one pod."""
    seen: dict[int, Member | Health] = {}
    for member in members:
        owner = member_owner(tc, member)
        if owner is Stranger.UNCLEAR:
            raise AddressNotUnderstood(f"PD reports {_known_as(member)}, {_LOOKS_OWN}")
        if isinstance(owner, Stranger):
            continue
        if owner in seen:
            both = f"{_known_as(seen[owner])} and {_known_as(member)}"
            raise AddressNotUnderstood(f"PD reports {both}, which are the same pod")
        seen[owner] = member


def _known_as(member: Member | Health) -> str:
    """The name and the addresses of a member, for a message: PD chooses them, so they are bounded."""
    return f"member {shortened(member.name) or '(unnamed)'} at {shortened(', '.join(map(shown_url, _urls(member))))}"


def not_understood(observations: Mapping[str, Outcome]) -> Failed | None:
    """The observation of this reconcile that failed with AddressNotUnderstood; None if none did."""
    failed = (seen for seen in observations.values() if isinstance(seen, Failed))
    return next((seen for seen in failed if seen.reason == AddressNotUnderstood.__name__), None)


_LOOKS_OWN = "which looks like a pod of this cluster but is not an address that its pods advertise"


def _named_like(tc: TidbCluster, name: str) -> int | Stranger:
    match = re.fullmatch(rf"{re.escape(member_name(tc, 'pd'))}-(0|[1-9]\d*)", name.lower())
    return int(match[1]) if match else address_book(tc).owner_of("pd", name)


def _urls(member: Member | Health | PDMember) -> tuple[str, ...]:
    match member:
        case PDMember():
            return (member.client_url,) if member.client_url else ()
        case Member():
            return (*member.client_urls, *member.peer_urls)
    return member.client_urls


def _of(component: str, stores: Iterable[S]) -> list[S]:
    return [store for store in stores if store.is_tiflash == (component == "tiflash")]
