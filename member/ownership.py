"""The assignment of PD's members and stores to the pods of this cluster (lifecycle.md 4.1, F24, F31).

An address that looks like one of this cluster's pods, but cannot be parsed, rules out every conclusion: about absent
members, and about pods that may go or must stay.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from apis.shared import PDMember
from apis.tidbcluster import TidbCluster
from dataplane.addresses import AddressBook, Stranger, shown_url
from dataplane.errors import AddressNotUnderstood
from dataplane.pd import Health, Member, Store
from member.naming import address_book
from member.outcome import Failed, Outcome
from ports.foreign_text import shortened

_STRANGERS = frozenset(Stranger)

Owner: TypeAlias = int | Stranger
"""The ordinal of the pod of this cluster that has an address; a Stranger for other addresses."""

M = TypeVar("M", Member, Health, PDMember)
S = TypeVar("S", bound=Store)


def member_owner(tc: TidbCluster, member: Member | Health | PDMember) -> Owner:
    """The ordinal of a member's pod: from its URLs or, if they show nothing, from its name."""
    return _owner(address_book(tc), member)


def owned_members(tc: TidbCluster, members: Iterable[M]) -> list[tuple[M, Owner]]:
    """The members with their owners; see `member_owner`."""
    book = address_book(tc)
    return [(member, _owner(book, member)) for member in members]


def _owner(book: AddressBook, member: Member | Health | PDMember) -> Owner:
    urls = _urls(member)
    owners = set(map(partial(book.owner_of, "pd"), urls))
    ordinals = owners - _STRANGERS
    if len(ordinals) == 1:
        return ordinals.pop()
    if ordinals or Stranger.UNCLEAR in owners or not (urls or member.name):
        return Stranger.UNCLEAR
    elsewhere = not member.name or any(".svc" in url for url in urls)
    return Stranger.PEER if elsewhere else _named_like(book, member.name)


def own_member(tc: TidbCluster, members: Iterable[M], ordinal: int) -> M | None:
    """The member of a pod; None if it has none."""
    return members_by_pod(tc, members).get(ordinal)


def members_by_pod(tc: TidbCluster, members: Iterable[M]) -> Mapping[Owner, M]:
    """The first member of each pod, by ordinal; also the first of strangers."""
    found: dict[Owner, M] = {}
    for member, owner in owned_members(tc, members):
        found.setdefault(owner, member)
    return found


def stores_by_pod(tc: TidbCluster, component: str, stores: Iterable[S]) -> Mapping[Owner, Sequence[S]]:
    """The stores of each pod, by ordinal, and the stores of peers; stores of TiFlash never count as TiKV's.

    Several stores may have one pod's address. Raises AddressNotUnderstood for a store that may belong to this cluster.
    """
    by_pod, owned = defaultdict[Owner, list[S]](list), owned_stores(tc, component, stores)
    require_understood_stores(owned)
    for store, owner in owned:
        by_pod[owner].append(store)
    return by_pod


def owned_stores(tc: TidbCluster, component: str, stores: Iterable[S]) -> list[tuple[S, Owner]]:
    """The stores of a component, by their label (F31), with their owners."""
    book, is_tiflash = address_book(tc), component == "tiflash"
    return [(store, book.owner_of(component, store.address)) for store in stores if store.is_tiflash == is_tiflash]


def require_understood_stores(owned: Iterable[tuple[Store, Owner]]) -> None:
    """Raise AddressNotUnderstood for a store that may belong to this cluster."""
    for store, owner in owned:
        if owner is Stranger.UNCLEAR:
            address = shortened(store.address) or "no address"
            raise AddressNotUnderstood(f"PD reports store {store.id} at {address}, {_LOOKS_OWN}")


def require_understood_members(tc: TidbCluster, members: Iterable[Member | Health]) -> None:
    """Raise AddressNotUnderstood for a member that may belong to this cluster, and for two members of one pod."""
    book = address_book(tc)
    require_understood_owners((member, _owner(book, member)) for member in members)


def require_understood_owners(owned: Iterable[tuple[Member | Health, Owner]]) -> None:
    """Like `require_understood_members`, for members whose owners are known."""
    seen: dict[int, Member | Health] = {}
    for member, owner in owned:
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


def _named_like(book: AddressBook, name: str) -> Owner:
    match = re.fullmatch(rf"{re.escape(book.cluster)}-pd-(0|[1-9]\d*)", name.lower())
    return int(match[1]) if match else book.owner_of("pd", name)


def _urls(member: Member | Health | PDMember) -> tuple[str, ...]:
    match member:
        case PDMember():
            return (member.client_url,) if member.client_url else ()
        case Member():
            return (*member.client_urls, *member.peer_urls)
    return member.client_urls
