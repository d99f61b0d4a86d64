"""Lies of servers: answers in the documented form whose content is not true (docs/security.md, data planes).

A lie changes the answers to the reads of one or several paths, about one pod of the cluster where it needs one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kube.objects import Json
from ports.transport import Request, Response

_STRANGER = "stranger"
"""A cluster that does not exist."""
_NANOSECONDS = 10**9
_LONG_AGO = 1
_FAR_FUTURE = 4_102_444_800
"""Seconds since 1970: the year 2100."""
_OTHER_ID = 7_000_000_000_000_000_001
_HUGE = 2**31
_NONE_LISTED = 404
_LEADERS = re.compile(r'(region_count\{[^}\n]*type="leader"[^}\n]*\}\s+)\S+')


@dataclass(frozen=True, slots=True)
class Truth:
    """A true answer that a lie is about to change."""

    answer: Any
    about: str
    """The pod that the lie is about."""
    number: int
    """How many requests have met the lie so far, this one included."""
    namespace: str

    def is_about(self, *texts: object) -> bool:
        """True if one of these names or addresses is of the pod."""
        return any(str(text).rpartition("/")[2].partition(".")[0].partition(":")[0] == self.about for text in texts)


Change = Callable[[Truth], Any]
"""The false answer; a number is an error with this status."""


def with_lie(lie: str, about: str, namespace: str, request: Request, response: Response, *, number: int) -> Response:
    """The answer of a server that lies. Raises LookupError for an unknown lie."""
    path = urlsplit(request.url).path
    change = next((each for pattern, each in LIES[lie].items() if re.fullmatch(pattern, path)), None)
    if change is None or not request.is_read or response.status != 200:
        return response
    try:
        answer = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        answer = response.body.decode()
    false = change(Truth(answer, about, number, namespace))
    if isinstance(false, int):
        return Response(false, response.headers, b'"not found"\n')
    body = false.encode() if isinstance(false, str) else msgspec.json.encode(false)
    return replace(response, body=body)


# stores


def _each_store(change: Callable[[Truth, Json], Json | None]) -> Change:
    """Change or omit each store, in a list or alone."""

    def of(said: Truth) -> Any:
        if "stores" not in said.answer:
            found = change(said, said.answer)
            return _NONE_LISTED if found is None else found
        stores = [found for store in said.answer["stores"] if (found := change(said, store)) is not None]
        return {"count": len(stores), "stores": stores}

    return of


def _store(store: Json | None = None, status: Json | None = None, *, all_of_them: bool = False) -> Change:
    """Other fields of the pod's store, or of all stores."""

    def changed(said: Truth, info: Json) -> Json:
        if not all_of_them and not said.is_about(info["store"]["address"]):
            return info
        return {"store": info["store"] | (store or {}), "status": info["status"] | (status or {})}

    return _each_store(changed)


def _without_store(said: Truth, info: Json) -> Json | None:
    return None if said.is_about(info["store"]["address"]) else info


def _swapped(said: Truth) -> Any:
    """The pod's store has the address of the next one, and the other way round."""
    if "stores" not in said.answer:
        return said.answer
    infos = said.answer["stores"]
    own = next((each for each in infos if said.is_about(each["store"]["address"])), None)
    other = next((each for each in infos if each is not own), None)
    if own is None or other is None:
        return said.answer
    addresses = {own["store"]["id"]: other["store"]["address"], other["store"]["id"]: own["store"]["address"]}
    moved = [
        each | {"store": each["store"] | {"address": addresses.get(each["store"]["id"], each["store"]["address"])}}
        for each in infos
    ]
    return {"count": len(moved), "stores": moved}


def _elsewhere(said: Truth, info: Json) -> Json:
    if not said.is_about(info["store"]["address"]):
        return info
    address = f"{_STRANGER}-tikv-0.{_STRANGER}-tikv-peer.{said.namespace}.svc:20160"
    return info | {"store": info["store"] | {"address": address}}


def _doubled(said: Truth) -> Any:
    if "stores" not in said.answer:
        return said.answer
    own = [store for store in said.answer["stores"] if said.is_about(store["store"]["address"])]
    twins = [each | {"store": each["store"] | {"id": each["store"]["id"] + _HUGE}} for each in own]
    stores = [*said.answer["stores"], *twins]
    return {"count": len(stores), "stores": stores}


def _growing(said: Truth, info: Json) -> Json:
    grown = {"leader_count": said.number * 1000, "region_count": said.number * 3000}
    return info | {"status": info["status"] | grown}


_TOMBSTONE: Json = {"state": 2, "node_state": 3, "state_name": "Tombstone"}
_OFFLINE: Json = {"state": 1, "node_state": 2, "state_name": "Offline"}
_UP: Json = {"state": 0, "node_state": 1, "state_name": "Up"}
_DOWN: Json = {"state_name": "Down", "last_heartbeat": _LONG_AGO}
_STORES = r"/pd/api/v1/stores?(/\d+)?"


# members


def _of_member(said: Truth, member: Json) -> bool:
    return said.is_about(member.get("name", ""), *(member.get("client_urls") or ()), *(member.get("peer_urls") or ()))


def _member_of_stranger(said: Truth) -> Json:
    host = f"{_STRANGER}-pd-0.{_STRANGER}-pd-peer.{said.namespace}.svc"
    urls = {"client_urls": [f"http://{host}:2379"], "peer_urls": [f"http://{host}:2380"]}
    return {"name": f"{_STRANGER}-pd-0", "member_id": _OTHER_ID} | urls


def _led_by(leader: Callable[[Truth], Json], *, turns: bool = False) -> Change:
    def of(said: Truth) -> Any:
        if turns and said.number % 2:
            return said.answer
        return said.answer | {"leader": leader(said)}

    return of


def _follower(said: Truth) -> Json:
    """The member of the pod, or another one if that leads."""
    led = said.answer.get("leader", {}).get("member_id")
    others = [member for member in said.answer["members"] if member["member_id"] != led]
    found: Json = next((each for each in others if _of_member(said, each)), others[0] if others else {})
    return found


def _dead_name(said: Truth) -> Json:
    """A member of the cluster that PD does not list: the pod above all others."""
    leader: Json = said.answer.get("leader") or said.answer["members"][0]
    cluster = str(leader["name"]).partition("-pd-")[0]
    host = f"{cluster}-pd-9.{cluster}-pd-peer.{said.namespace}.svc"
    return leader | {"name": f"{cluster}-pd-9", "member_id": _OTHER_ID, "client_urls": [f"http://{host}:2379"]}


def _members(change: Callable[[Truth, list[Json]], list[Json]]) -> Change:
    return lambda said: said.answer | {"members": change(said, said.answer["members"])}


def _healths(change: Callable[[Truth, list[Json]], list[Json]]) -> Change:
    return lambda said: change(said, said.answer)


def _without(said: Truth, members: list[Json]) -> list[Json]:
    return [member for member in members if not _of_member(said, member)]


def _twice(said: Truth, members: list[Json]) -> list[Json]:
    return [*members, *(member | {"member_id": _OTHER_ID} for member in members if _of_member(said, member))]


def _with_stranger(said: Truth, members: list[Json]) -> list[Json]:
    return [*members, _member_of_stranger(said)]


def _with_healthy_stranger(said: Truth, healths: list[Json]) -> list[Json]:
    stranger = {key: value for key, value in _member_of_stranger(said).items() if key != "peer_urls"}
    return [*healths, stranger | {"health": True}]


def _health(healthy: bool, *, all_of_them: bool = False) -> Change:
    return _healths(
        lambda said, found: [
            each | {"health": healthy} if all_of_them or _of_member(said, each) else each for each in found
        ]
    )


_MEMBERS, _HEALTH, _CLUSTER = "/pd/api/v1/members", "/pd/api/v1/health", "/pd/api/v1/cluster"
_SCHEDULERS, _EVICTIONS = "/pd/api/v1/schedulers", "/pd/api/v1/scheduler-config/evict-leader-scheduler/list"


# schedulers and settings


def _evicting(said: Truth) -> Any:
    return [*(each for each in said.answer if not each.startswith("evict-leader")), "evict-leader-scheduler"]


def _no_eviction(said: Truth) -> Any:
    return [each for each in said.answer if not each.startswith("evict-leader")]


def _one_replica(said: Truth) -> Any:
    return said.answer | {"replication": said.answer["replication"] | {"max-replicas": 1}}


# other servers


def _leaders(count: Callable[[Truth], int]) -> Change:
    def of(said: Truth) -> Any:
        return _LEADERS.sub(lambda found: f"{found[1]}{count(said)}", said.answer)

    return of


def _masters(change: Callable[[Truth, Json], Json | None]) -> Change:
    """Change or omit each master or worker of DM."""

    def of(said: Truth) -> Any:
        tree = said.answer
        for entry in tree.get("members") or ():
            for kind, plural in (("master", "masters"), ("worker", "workers")):
                if entry.get(kind):
                    found = [made for each in entry[kind].get(plural) or () if (made := change(said, each)) is not None]
                    entry[kind][plural] = found
        return tree

    return of


def _dm_leader(said: Truth) -> Any:
    for entry in said.answer.get("members") or ():
        if entry.get("leader"):
            entry["leader"]["name"] = f"{_STRANGER}-dm-master-0"
    return said.answer


_DM = "/apis/v1alpha1/members"

LIES: Mapping[str, Mapping[str, Change]] = {
    "store-is-tombstone": {_STORES: _store(_TOMBSTONE)},
    "store-is-offline": {_STORES: _store(_OFFLINE)},
    "store-is-down": {_STORES: _store(_DOWN)},
    "stores-are-up": {_STORES: _store(_UP, all_of_them=True)},
    "store-is-missing": {_STORES: _each_store(_without_store)},
    "no-stores": {_STORES: lambda said: {"count": 0, "stores": []} if "stores" in said.answer else _NONE_LISTED},
    "stores-are-swapped": {_STORES: _swapped},
    "store-of-another-cluster": {_STORES: _each_store(_elsewhere)},
    "store-is-there-twice": {_STORES: _doubled},
    "stores-are-empty": {
        _STORES: _store(status={"leader_count": 0, "region_count": 0, "region_size": 0}, all_of_them=True)
    },
    "stores-grow": {_STORES: _each_store(_growing)},
    "stores-are-ancient": {
        _STORES: _store({"last_heartbeat": -_FAR_FUTURE * _NANOSECONDS, "start_timestamp": -1}, all_of_them=True)
    },
    "stores-are-of-tomorrow": {
        _STORES: _store({"last_heartbeat": 2**63 - 1, "start_timestamp": 2**63 - 1}, all_of_them=True)
    },
    "stores-have-another-version": {_STORES: _store({"version": "3.0.0"}, all_of_them=True)},
    "leader-is-a-stranger": {_MEMBERS: _led_by(_member_of_stranger)},
    "leader-is-missing": {_MEMBERS: _led_by(_dead_name)},
    "another-leads": {_MEMBERS: _led_by(_follower)},
    "two-lead": {_MEMBERS: _led_by(_follower, turns=True)},
    "member-is-missing": {_MEMBERS: _members(_without)},
    "member-is-forgotten": {_MEMBERS: _members(_without), _HEALTH: _healths(_without)},
    "member-is-there-twice": {_MEMBERS: _members(_twice), _HEALTH: _healths(_twice)},
    "member-of-another-cluster": {_MEMBERS: _members(_with_stranger), _HEALTH: _healths(_with_healthy_stranger)},
    "members-are-healthy": {_HEALTH: _health(True, all_of_them=True)},
    "member-is-dead": {_HEALTH: _health(False)},
    "members-are-dead": {_HEALTH: _health(False, all_of_them=True)},
    "another-cluster": {
        _MEMBERS: lambda said: said.answer | {"header": {"cluster_id": _OTHER_ID}},
        _CLUSTER: lambda said: said.answer | {"id": _OTHER_ID},
    },
    "leaders-are-evicted": {_SCHEDULERS: _evicting, _EVICTIONS: lambda said: said.answer},
    "no-leaders-are-evicted": {_SCHEDULERS: _no_eviction, _EVICTIONS: lambda _: _NONE_LISTED},
    "one-replica": {"/pd/api/v1/config": _one_replica, "/pd/api/v1/config/rules": lambda _: []},
    "leads-nothing": {"/metrics": _leaders(lambda _: 0)},
    "leads-ever-more": {"/metrics": _leaders(lambda said: said.number * 1000)},
    "serves-nothing": {"/status": lambda _: 500, "/api/debug/health": lambda _: 502},
    "owns-all": {
        "/status": lambda said: said.answer | {"is_owner": True} if isinstance(said.answer, dict) else said.answer,
        "/info": lambda said: said.answer | {"is_owner": True, "version": "3.0.0"},
        "/api/v1/captures": lambda said: [each | {"is_owner": True} for each in said.answer],
    },
    "owns-nothing": {
        "/status": lambda said: said.answer | {"is_owner": False} if isinstance(said.answer, dict) else said.answer,
        "/api/v1/captures": lambda said: [each | {"is_owner": False} for each in said.answer],
    },
    "no-captures": {"/api/v1/captures": lambda _: []},
    "dm-leader-is-a-stranger": {_DM: _dm_leader},
    "dm-member-is-missing": {_DM: _masters(lambda said, each: None if said.is_about(each["name"]) else each)},
    "dm-member-is-dead": {
        _DM: _masters(
            lambda said, each: (
                each | ({"stage": "offline"} if "stage" in each else {"alive": False})
                if said.is_about(each["name"])
                else each
            )
        )
    },
    "dm-members-are-well": {
        _DM: _masters(lambda _, each: each | ({"stage": "free"} if "stage" in each else {"alive": True}))
    },
}
"""Each lie by its name: the false answers by the pattern of the path."""
