"""PD's embedded etcd behind its JSON gateway: keys, leases, six verbs (dataplane-apis.md 4)."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from kube.objects import Json
from ports.transport import Response

_INVALID = 3


@dataclass(slots=True)
class KeyValue:
    """One key. Revisions count writes of the whole store."""

    value: bytes
    created: int
    modified: int
    version: int
    lease: int = 0


@dataclass(slots=True)
class Etcd:
    """A key-value store with leases. `now` is an argument: expired keys are dropped at the next access."""

    revision: int = 1
    keys: dict[bytes, KeyValue] = field(default_factory=dict)
    leases: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By lease: the clock time of its end, and its length in seconds."""
    _last_lease: int = 7587000000000000000

    def put(self, key: bytes, value: bytes, lease: int = 0) -> None:
        """Write a key."""
        self.revision += 1
        before = self.keys.get(key)
        created, version = (before.created, before.version + 1) if before is not None else (self.revision, 1)
        self.keys[key] = KeyValue(value, created, self.revision, version, lease)

    def range(self, key: bytes, end: bytes, now: float) -> list[tuple[bytes, KeyValue]]:
        """The key, or all keys from it up to `end` (exclusive), in order; an `end` of one zero byte means all."""
        self.expire(now)
        if not end:
            return [(key, self.keys[key])] if key in self.keys else []
        found = sorted(each for each in self.keys if each >= key and (end == b"\0" or each < end))
        return [(each, self.keys[each]) for each in found]

    def delete(self, key: bytes, end: bytes, now: float) -> int:
        """Delete the key or range; return the number of deleted keys."""
        found = self.range(key, end, now)
        for each, _ in found:
            del self.keys[each]
        self.revision += bool(found)
        return len(found)

    def grant(self, ttl: float, now: float) -> int:
        """Create a lease of `ttl` seconds."""
        self._last_lease += 1
        self.leases[self._last_lease] = (now + ttl, ttl)
        return self._last_lease

    def keep_alive(self, lease: int, now: float) -> bool:
        """Restart the time of a lease; True if it still existed."""
        self.expire(now)
        if lease not in self.leases:
            return False
        self.leases[lease] = (now + self.leases[lease][1], self.leases[lease][1])
        return True

    def expire(self, now: float) -> None:
        """Drop expired leases with their keys."""
        ended = {lease for lease, (end, _) in self.leases.items() if end <= now}
        if not ended:
            return
        for lease in ended:
            del self.leases[lease]
        for key in [key for key, entry in self.keys.items() if entry.lease in ended]:
            del self.keys[key]
            self.revision += 1


def gateway(etcd: Etcd, cluster_id: int, path: str, body: bytes | None, now: float) -> Response | None:
    """The answer of the JSON gateway, or None for an unknown path."""
    verb = _VERBS.get(path)
    if verb is None:
        return None
    try:
        asked: Json = json.loads(body or b"{}")
        answer = verb(etcd, asked, now)
    except (ValueError, binascii.Error, TypeError) as error:
        return _json(400, {"error": str(error), "message": str(error), "code": _INVALID})
    if answer is None:
        message = "etcdserver: requested lease not found"
        return _json(404, {"error": message, "message": message, "code": 5})
    return _json(200, {"header": {"cluster_id": str(cluster_id), "revision": str(etcd.revision)}} | answer)


def _range(etcd: Etcd, asked: Json, now: float) -> Json:
    found = etcd.range(_bytes(asked, "key"), _bytes(asked, "range_end"), now)
    kvs = []
    for key, entry in found:
        kv = {
            "key": _text(key),
            "create_revision": str(entry.created),
            "mod_revision": str(entry.modified),
            "version": str(entry.version),
        }
        kv |= {"value": _text(entry.value)} if entry.value else {}
        kv |= {"lease": str(entry.lease)} if entry.lease else {}
        kvs.append(kv)
    return {"kvs": kvs, "count": str(len(kvs))} if kvs else {}


def _put(etcd: Etcd, asked: Json, now: float) -> Json | None:
    etcd.expire(now)
    lease = int(asked.get("lease", 0))
    if lease and lease not in etcd.leases:
        return None
    etcd.put(_bytes(asked, "key"), _bytes(asked, "value"), lease)
    return {}


def _delete_range(etcd: Etcd, asked: Json, now: float) -> Json:
    deleted = etcd.delete(_bytes(asked, "key"), _bytes(asked, "range_end"), now)
    return {"deleted": str(deleted)} if deleted else {}


def _txn(etcd: Etcd, asked: Json, now: float) -> Json:
    """A transaction of deletions without conditions. Raises ValueError for any other."""
    steps = asked.get("success") or []
    if asked.get("compare") or asked.get("failure") or any([*step] != ["requestDeleteRange"] for step in steps):
        raise ValueError("the sandbox's etcd knows transactions of deletions alone")
    answers = [_delete_range(etcd, step["requestDeleteRange"], now) for step in steps]
    return {"succeeded": True, "responses": [{"response_delete_range": answer} for answer in answers]}


def _grant(etcd: Etcd, asked: Json, now: float) -> Json:
    ttl = int(asked["TTL"]) if "TTL" in asked else 0
    return {"ID": str(etcd.grant(float(ttl), now)), "TTL": str(ttl)}


def _time_to_live(etcd: Etcd, asked: Json, now: float) -> Json:
    etcd.expire(now)
    end, ttl = etcd.leases.get(int(asked["ID"]), (now - 1.0, 0.0))
    granted = {"grantedTTL": str(int(ttl))} if ttl else {}
    return {"ID": asked["ID"], "TTL": str(int(end - now))} | granted


_VERBS: dict[str, Callable[[Etcd, Json, float], Json | None]] = {
    "/v3/kv/range": _range,
    "/v3/kv/put": _put,
    "/v3/kv/deleterange": _delete_range,
    "/v3/kv/txn": _txn,
    "/v3/lease/grant": _grant,
    "/v3/lease/timetolive": _time_to_live,
}


def _bytes(asked: Json, name: str) -> bytes:
    return base64.b64decode(asked.get(name, ""), validate=True)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _json(status: int, body: Json) -> Response:
    return Response(status, {"content-type": "application/json"}, json.dumps(body, separators=(",", ":")).encode())
