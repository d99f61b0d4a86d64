"""PD's HTTP API, answer by answer (dataplane-apis.md 3)."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from kube.objects import Json
from ports import duration
from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import configuration
from sandbox.dataplane.pd.cluster import Member, PdCluster, RemovalRefused
from sandbox.dataplane.pd.config import lease
from sandbox.dataplane.pd.etcd import gateway
from sandbox.dataplane.pd.process import PdProcess
from sandbox.dataplane.pd.stores import Store, StoreRefused, Stores, is_reserved, store_labels
from sandbox.dataplane.processes import Answer, not_found, text

NOT_BOOTSTRAPPED = "[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"
_NO_LEADER = "[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader"
_NOT_LEADER = "[PD:apiutil:ErrRedirectToNotLeader]redirect to not leader"
_ALLOW_FOLLOWER, _REDIRECTOR = "pd-allow-follower-handle", "pd-redirector"
_PING_TIMEOUT = 3.0
_ETCD_TIMEOUT = 1.0
_EVICT = "evict-leader-scheduler"
_SCHEDULERS = ["balance-hot-region-scheduler", "balance-leader-scheduler", "balance-region-scheduler"]
_SCHEDULERS += ["evict-slow-store-scheduler"]
_REGION_BYTES = 2**20
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class _Call:
    """A request to one member of a cluster."""

    process: PdProcess
    cluster: PdCluster
    deps: Dependencies
    names: tuple[str, ...]
    query: dict[str, list[str]]
    body: bytes

    @property
    def now(self) -> float:
        return self.deps.clock.now()

    def json(self) -> Any:
        return json.loads(self.body or b"null")


def answer(process: PdProcess, request: Request, deps: Dependencies) -> Answer:
    """The answer of a serving member."""
    cluster = process.cluster
    parts = urlsplit(request.url)
    if cluster is None:
        return Answer(text(503, "server not started\n"))
    if parts.path == "/health":
        return _etcd_health(process, cluster)
    if parts.path.startswith("/v3/"):
        return _etcd(process, cluster, parts.path, request.body, deps)
    found = _route(request.method, parts.path)
    if found is None:
        return Answer(not_found())
    route, names = found
    call = _Call(process, cluster, deps, names, parse_qs(parts.query), request.body or b"")
    return _ask(route, call, request)


def _ask(route: "_Route", call: _Call, request: Request) -> Answer:
    """The answer of this member, or of the leader."""
    cluster, stores = call.cluster, call.cluster.stores
    headers = {name.lower(): value for name, value in request.headers.items()}
    leads = call.process.member is not None and cluster.leader is call.process.member
    local = route.local or (
        bool(route.local_since) and _numbers(call.process.launch.version) >= _numbers(route.local_since)
    )
    if not local and headers.get(_ALLOW_FOLLOWER) != "true" and not leads:
        return _redirect(call.process, cluster.leader, request, headers, call.deps)
    if route.clustered and (not stores.bootstrapped or stores.is_loading(call.now)):
        return Answer(_json(500, NOT_BOOTSTRAPPED))
    given = _carry_out(route, call)
    return given if isinstance(given, Answer) else Answer(given)


@lru_cache(maxsize=1_000)
def _numbers(version: str) -> tuple[int, ...]:
    """`8.5.5-patch` becomes (8, 5, 5)."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0])))


def _redirect(
    process: PdProcess, leader: Member | None, request: Request, headers: Mapping[str, str], deps: Dependencies
) -> Answer:
    """The answer of a follower: it forwards the request to the leader."""
    if _REDIRECTOR in headers:
        return Answer(text(500, _NOT_LEADER + "\n"))
    if leader is None or not isinstance(leader.voter, PdProcess):
        # a follower waits for a leader before it gives up
        return Answer(text(503, _NO_LEADER + "\n"), delay=deps.timings.pd_leader_wait, provisional=True)
    passed_on = replace(request, headers=dict(headers) | {_REDIRECTOR: process.name})
    return deps.network.pass_on(passed_on, process.origin, leader.voter.launch, leader.voter, leader.client_url)


def _carry_out(route: "_Route", call: _Call) -> Response | Answer:
    try:
        return route.handler(call)
    except StoreRefused as refused:
        return _json(refused.status, refused.message)
    except (ValueError, TypeError) as error:
        return _json(400, {"code": "input", "msg": str(error), "data": None})


def _etcd_health(process: PdProcess, cluster: PdCluster) -> Answer:
    """etcd's own health route: whether this member can read with the quorum, which takes up to a second."""
    if cluster.leader is None or process.member is None:
        return Answer(_json(503, {"health": "false"}))
    if not process.votes():
        return Answer(_json(503, {"health": "false"}), delay=_ETCD_TIMEOUT)
    return Answer(_json(200, {"health": "true"}))


def _etcd(process: PdProcess, cluster: PdCluster, path: str, body: bytes | None, deps: Dependencies) -> Answer:
    if cluster.leader is None or not process.votes():
        # a linearizable read hangs without a quorum; clients give up earlier
        return Answer(text(503, ""), delay=float("inf"))
    return Answer(gateway(cluster.etcd, cluster.id, path, body, deps.clock.now()) or not_found())


def _json(status: int, body: object) -> Response:
    payload = msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"
    return Response(status, {"content-type": "application/json; charset=UTF-8"}, payload)


# members


def _health(call: _Call) -> Answer:
    entries = []
    delay = 0.0
    for member in call.cluster.members.values():
        healthy = bool(member.name) and member.voter is not None and member.voter.answers(call.process.origin)
        if not healthy and member.voter is not None:
            delay += _PING_TIMEOUT
        entries.append(
            {
                "name": member.name,
                "member_id": member.id,
                "client_urls": [member.client_url] if member.client_url else None,
                "health": healthy,
            }
        )
    return Answer(_json(200, entries), delay)


def _member(member: Member) -> Json:
    tree: Json = {"name": member.name, "member_id": member.id, "peer_urls": [member.peer_url]}
    if member.client_url:
        tree["client_urls"] = [member.client_url]
    if member.version:
        tree |= {"deploy_path": "/", "binary_version": f"v{member.version}", "git_hash": "0" * 40}
    return tree


def _members(call: _Call) -> Response:
    body: Json = {
        "header": {"cluster_id": call.cluster.id},
        "members": [_member(member) for member in call.cluster.members.values()],
    }
    leader = call.cluster.leader
    if leader is not None:
        body |= {"leader": _member(leader), "etcd_leader": _member(leader)}
    return _json(200, body)


def _leader(call: _Call) -> Response:
    leader = call.cluster.leader
    told = ("name", "member_id", "peer_urls", "client_urls")
    return _json(200, {key: value for key, value in _member(leader).items() if key in told} if leader else None)


def _named(call: _Call, name: str) -> Member | None:
    return next((member for member in call.cluster.members.values() if member.name == name), None)


def _transfer(call: _Call) -> Response:
    member = _named(call, call.names[0])
    if member is None or not member.healthy:
        return _json(500, "no valid pd to transfer etcd leader")
    call.cluster.transfer(member)
    return _json(200, "The transfer command is submitted.")


def _resign(call: _Call) -> Response:
    call.cluster.transfer(None)
    return _json(200, "The resign command is submitted.")


def _delete_by_name(call: _Call) -> Response:
    member = _named(call, call.names[0])
    if member is None:
        return _json(404, f"not found, pd: {call.names[0]}")
    return _delete_member(call, member, member.name)


def _delete_by_id(call: _Call) -> Response:
    member = call.cluster.members.get(int(call.names[0]))
    if member is None:
        return _json(500, _not_removed("etcdserver: member not found"))
    return _delete_member(call, member, call.names[0])


def _delete_member(call: _Call, member: Member, called: str) -> Response:
    try:
        call.cluster.remove(member.id)
    except RemovalRefused as refused:
        return _json(500, _not_removed(str(refused)))
    return _json(200, f"removed, pd: {called}")


def _not_removed(why: str) -> str:
    return f"[PD:etcd:ErrEtcdMemberRemove]{why}: {why}"


# cluster and configuration


def _cluster(call: _Call) -> Response:
    return _json(200, {"id": call.cluster.id, "max_peer_count": call.cluster.config.max_replicas})


def _get_config(call: _Call) -> Response:
    log_file = {"filename": "", "max-size": 0, "max-days": 0, "max-backups": 0}
    body: Json = {
        "name": call.process.name,
        "client-urls": "http://0.0.0.0:2379",
        "data-dir": "/var/lib/pd",
        "lease": lease(configuration(call.process.launch)),
        "log": {"level": "info", "format": "text", "file": log_file},
    }
    return _json(200, body | call.cluster.config.sections | {"cluster-version": call.cluster.stores.cluster_version})


def _get_replication(call: _Call) -> Response:
    return _json(200, call.cluster.config.sections["replication"])


def _set_config(call: _Call) -> Response:
    return _update(call, call.json())


def _set_replication(call: _Call) -> Response:
    asked = call.json()
    by_rules = call.cluster.placement.is_enabled or str(asked.get("enable-placement-rules")) == "true"
    if by_rules and not call.cluster.stores.bootstrapped:
        return _json(500, NOT_BOOTSTRAPPED)
    return _update(call, {f"replication.{key}": value for key, value in asked.items()})


def _update(call: _Call, items: Json) -> Response:
    try:
        call.cluster.config.update(items)
    except KeyError as unknown:
        return _json(400, f"config item {unknown.args[0]} not found")
    return _json(200, "The config is updated.")


def _version(call: _Call) -> Response:
    return _json(200, {"version": f"v{call.process.launch.version}"})


def _status(call: _Call) -> Response:
    return _json(200, {"build_ts": "", "version": f"v{call.process.launch.version}", "git_hash": "0" * 40})


def _ping(call: _Call) -> Response:  # noqa: ARG001
    return text(200, "")


def _ready(call: _Call) -> Response:
    served_at = call.process.served_at or 0.0
    # the leader loads regions once there are stores; followers have what it has sent them
    has_any = call.cluster.stores.bootstrapped or call.cluster.leader is not call.process.member
    loaded = has_any and call.now >= served_at + call.deps.timings.pd_regions_loaded
    if "verbose" in call.query:
        return _json(200 if loaded else 500, {"region_loaded": loaded})
    return text(200 if loaded else 500, "")


def _recovering(call: _Call) -> Response:
    return _json(200, {"marked": call.cluster.recovering})


def _ms_members(call: _Call) -> Response:
    if not call.process.is_api_only:
        return _json(404, "not support micro service")
    return _json(200, [member.shown() for member in call.cluster.services.members(call.names[0], call.now)])


def _ms_primary(call: _Call) -> Response:
    if not call.process.is_api_only:
        return _json(404, "not support micro service")
    primary = call.cluster.services.primary(call.names[0], call.now)
    return _json(200, primary.address if primary else "")


# stores


def _stores(call: _Call) -> Response:
    states = {int(state) for state in call.query.get("state", [])} or {0, 1}
    now = call.now
    found = [_store(call, store, now) for store in call.cluster.stores.all() if store.proto_state in states]
    return _json(200, {"count": len(found), "stores": found})


def _get_store(call: _Call) -> Response:
    return _json(200, _store(call, call.cluster.stores.get(int(call.names[0])), call.now))


def _store(call: _Call, store: Store, now: float) -> Json:
    tree: Json = {"id": store.id, "address": store.address}
    if store.labels:
        tree["labels"] = store_labels(store)
    if store.proto_state:
        tree["state"] = store.proto_state
    tree |= {
        "version": store.version,
        "status_address": store.status_address,
        "git_hash": "0" * 40,
        "start_timestamp": int(store.started),
        "deploy_path": "/",
        "last_heartbeat": int(store.known.wall * 1e9),
    }
    if store.node_state:
        tree["node_state"] = int(store.node_state)
    tree["state_name"] = call.cluster.stores.state_name(store, now)
    used, leaders = store.peers * _REGION_BYTES, call.cluster.stores.reported_leaders(store, now)
    available = store.capacity // 20 if store.low_space else store.capacity - used
    status = {
        "capacity": readable_size(store.capacity),
        "available": readable_size(available),
        "used_size": readable_size(used),
        "leader_count": leaders,
        "leader_weight": 1,
        "leader_score": leaders,
        "leader_size": leaders,
        "region_count": store.peers,
        "region_weight": 1,
        "region_score": store.peers,
        "region_size": store.peers,
        "slow_score": 1,
        "start_ts": _rfc3339(store.started),
        "last_heartbeat_ts": _rfc3339(store.known.wall),
        "uptime": duration.go_text(max(store.known.wall - store.started, 0.0)),
    }
    return {"store": tree, "status": status}


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _delete_store(call: _Call) -> Response:
    call.cluster.stores.remove(int(call.names[0]), call.now)
    return _json(200, "The store is set as Offline.")


def _remove_tombstones(call: _Call) -> Response:
    call.cluster.stores.remove_tombstones()
    return _json(200, "Remove tombstone successfully.")


def _rules(call: _Call) -> Response:
    """All placement rules, or those in a group."""
    if not call.cluster.placement.is_enabled:
        return _json(412, "placement rules feature is disabled")
    return _json(200, call.cluster.placement.rules(*call.names) or None)


def _set_rule(call: _Call) -> Response:
    call.cluster.placement.set(call.json())
    call.cluster.stores.reschedule(call.now)
    return _json(200, "Update rule successfully.")


def _remove_rule(call: _Call) -> Response:
    call.cluster.placement.remove(*call.names)
    call.cluster.stores.reschedule(call.now)
    return _json(200, "Delete rule successfully.")


def _set_state(call: _Call) -> Response:
    store = int(call.names[0])
    match call.query.get("state", [""])[0]:
        case "Up":
            call.cluster.stores.restore(store, call.now)
        case "Offline":
            call.cluster.stores.remove(store, call.now)
        case other:
            return _json(400, f"invalid state {other}")
    return _json(200, "The store's state is updated.")


def _set_labels(call: _Call) -> Response:
    labels = call.json()
    if not isinstance(labels, dict):
        raise TypeError("labels are not an object")
    reserved = [key for key in labels if is_reserved(key)]
    if reserved:
        raise ValueError(f"label {reserved[0]} is reserved")
    if (other := call.cluster.config.refused_label(labels)) is not None:
        return _json(500, f"key matching the label was not found in the PD, store label key: {other}")
    try:
        store = call.cluster.stores.get(int(call.names[0]))
    except StoreRefused:
        return _json(500, f"[PD:cluster:ErrInvalidStoreID]invalid store id {call.names[0]}, not found")
    store.labels |= {str(key): str(value) for key, value in labels.items()}
    call.cluster.stores.reschedule(call.now)
    return _json(200, "The store's label is updated.")


# regions


def _down_peers(call: _Call) -> Response:
    down = call.cluster.stores.down(call.now)
    return _regions(call, lambda index: down.intersection(call.cluster.stores.regions[index].peers))


def _pending_peers(call: _Call) -> Response:
    return _regions(call, lambda index: call.cluster.stores.pending.get(index, ()))


def _regions(call: _Call, listed: Callable[[int], Collection[int]]) -> Response:
    """The regions for which `listed` is not empty, all of them: PD knows no limit here. Compact, unlike other answers.

    A new leader lists only regions that have reported to it.
    """
    stores = call.cluster.stores
    reported = range(stores.reported_regions(call.now))
    found = [_region(stores, index, call.now) for index in reported if listed(index)]
    payload = msgspec.json.encode({"count": len(found), "regions": found})
    return Response(200, {"content-type": "application/json; charset=UTF-8"}, payload)


def _region(stores: Stores, index: int, now: float) -> Json:
    region, number = stores.regions[index], 2 + 10 * index
    peers = {
        store: {"id": number + position, "store_id": store, "role_name": "Voter"}
        for position, store in enumerate(region.peers, 1)
    }
    down = [{"peer": peers[store], "down_seconds": 600} for store in region.peers if store in stores.down(now)]
    pending = [peers[store] for store in region.peers if store in stores.pending.get(index, ())]
    tree: Json = {"id": number, "start_key": "", "end_key": "", "epoch": {"conf_ver": 5, "version": 1}}
    tree |= {"peers": list(peers.values()), "leader": peers.get(region.leader or 0, {"role_name": "Voter"})}
    tree |= {"down_peers": down} if down else {}
    tree |= {"pending_peers": pending} if pending else {}
    return tree | {"cpu_usage": 0, "written_bytes": 0, "read_bytes": 0, "written_keys": 0, "read_keys": 0}


# schedulers


def _list_schedulers(call: _Call) -> Response:
    if not call.cluster.stores.is_prepared(call.now):
        # a new leader starts its schedulers only after the regions have reported
        return _json(200, [])
    evicting = [_EVICT] if call.cluster.stores.evicting else []
    return _json(200, [*_SCHEDULERS, *evicting])


def _add_scheduler(call: _Call) -> Response:
    asked = call.json()
    if asked.get("name") != _EVICT:
        return _json(400, f"unknown scheduler {asked.get('name')}")
    store = asked.get("store_id")
    if store is None:
        return _json(400, "missing store id")
    if not isinstance(store, int):
        return _json(400, "please input a right store id")
    exists = bool(call.cluster.stores.evicting)
    try:
        call.cluster.stores.evict(store, call.now)
    except StoreRefused as refused:
        return _json(500, refused.message)
    done = "The scheduler has been applied to the store." if exists else "The scheduler is created."
    return _json(200, done)


def _remove_scheduler(call: _Call) -> Response:
    name, stores = call.names[0], call.cluster.stores
    if not stores.is_prepared(call.now):
        return _json(404, "[PD:scheduler:ErrScheduleConfigNotExist]the config does not exist")
    if name == _EVICT:
        if not stores.evicting:
            return _json(404, "[PD:scheduler:ErrSchedulerNotFound]scheduler not found")
        for store in tuple(stores.evicting):
            stores.stop_evicting(store, call.now)
        return _json(200, "The scheduler is removed.")
    found = stores.stop_evicting(int(name.removeprefix(f"{_EVICT}-")), call.now)
    return _json(200 if found else 404, None)


def _evict_config(call: _Call) -> Response:
    if not call.cluster.stores.evicting or not call.cluster.stores.is_prepared(call.now):
        return not_found()
    ranges = {str(store): [{"start-key": "", "end-key": ""}] for store in sorted(call.cluster.stores.evicting)}
    return _json(200, {"store-id-ranges": ranges, "batch": 3})


_Handler = Callable[[_Call], Response | Answer]


@dataclass(frozen=True, slots=True)
class _Route:
    method: str
    pattern: re.Pattern[str]
    handler: _Handler
    local: bool = False
    """True if the called member answers; other routes belong to the leader (3.1)."""
    local_since: str = ""
    """The version from which on the called member answers."""
    clustered: bool = False
    """True if the route is refused until the first TiKV has bootstrapped the cluster."""


def _to(
    method: str, path: str, handler: _Handler, *, local: bool = False, local_since: str = "", clustered: bool = False
) -> _Route:
    pattern = re.sub(r"\{\w+\}", "([^/]+)", path)
    return _Route(method, re.compile(pattern), handler, local, local_since, clustered)


_V1 = "/pd/api/v1"
_LOCAL_SINCE = "8.5.5"
_ROUTES = (
    _to("GET", f"{_V1}/health", _health, local_since=_LOCAL_SINCE),
    _to("GET", f"{_V1}/ping", _ping, local_since=_LOCAL_SINCE),
    _to("GET", f"{_V1}/version", _version, local_since=_LOCAL_SINCE),
    _to("GET", f"{_V1}/status", _status, local_since=_LOCAL_SINCE),
    _to("GET", f"{_V1}/config", _get_config),
    _to("GET", "/pd/api/v2/ready", _ready, local=True),
    _to("GET", f"{_V1}/members", _members),
    _to("DELETE", f"{_V1}/members/name/{{name}}", _delete_by_name),
    _to("DELETE", f"{_V1}/members/id/{{id}}", _delete_by_id),
    _to("GET", f"{_V1}/leader", _leader),
    _to("POST", f"{_V1}/leader/transfer/{{name}}", _transfer),
    _to("POST", f"{_V1}/leader/resign", _resign),
    _to("GET", f"{_V1}/cluster", _cluster),
    _to("POST", f"{_V1}/config", _set_config),
    _to("GET", f"{_V1}/config/replicate", _get_replication),
    _to("POST", f"{_V1}/config/replicate", _set_replication),
    _to("GET", f"{_V1}/admin/cluster/markers/snapshot-recovering", _recovering),
    _to("GET", "/pd/api/v2/ms/members/{service}", _ms_members),
    _to("GET", "/pd/api/v2/ms/primary/{service}", _ms_primary),
    _to("GET", f"{_V1}/stores", _stores, clustered=True),
    _to("DELETE", f"{_V1}/stores/remove-tombstone", _remove_tombstones, clustered=True),
    _to("GET", f"{_V1}/config/rules", _rules, clustered=True),
    _to("GET", f"{_V1}/config/rules/group/{{group}}", _rules, clustered=True),
    _to("POST", f"{_V1}/config/rule", _set_rule, clustered=True),
    _to("DELETE", f"{_V1}/config/rule/{{group}}/{{id}}", _remove_rule, clustered=True),
    _to("GET", f"{_V1}/store/{{id}}", _get_store, clustered=True),
    _to("DELETE", f"{_V1}/store/{{id}}", _delete_store, clustered=True),
    _to("POST", f"{_V1}/store/{{id}}/state", _set_state, clustered=True),
    _to("POST", f"{_V1}/store/{{id}}/label", _set_labels, clustered=True),
    _to("GET", f"{_V1}/regions/check/down-peer", _down_peers, clustered=True),
    _to("GET", f"{_V1}/regions/check/pending-peer", _pending_peers, clustered=True),
    _to("GET", f"{_V1}/schedulers", _list_schedulers, clustered=True),
    _to("POST", f"{_V1}/schedulers", _add_scheduler, clustered=True),
    _to("DELETE", f"{_V1}/schedulers/{{name}}", _remove_scheduler, clustered=True),
    _to("GET", f"{_V1}/scheduler-config/evict-leader-scheduler/list", _evict_config, clustered=True),
)


@lru_cache(maxsize=10_000)
def _route(method: str, path: str) -> tuple[_Route, tuple[str, ...]] | None:
    for route in _ROUTES:
        if route.method == method and (match := route.pattern.fullmatch(path)):
            return route, match.groups()
    return None


def readable_size(count: int) -> str:
    """Bytes with four significant digits, such as `98.6GiB`."""
    value = float(count)
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{value:.4g}{_UNITS[unit]}"
