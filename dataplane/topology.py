"""What TiDB Dashboard looks up in PD's etcd: TiDB servers, and where monitors are (dataplane-apis.md 4)."""

from collections.abc import Mapping, Sequence

import msgspec

from dataplane.etcd import EtcdClient

_ROOT = "/topology"
_SERVERS = f"{_ROOT}/tidb/"
_INFO, _TTL = "/info", "/ttl"
_LEASE = 600
"""Seconds that the address of a monitor is known for after it was last told, as in v1.6."""


def left_behind(etcd: EtcdClient) -> Sequence[str]:
    """The servers, `host:port`, that ended without taking leave. Raises Unavailable, ApiError; NotFound as `below`."""
    keys = etcd.below(_SERVERS)
    infos = (key.removesuffix(_INFO) for key in keys if key.endswith(_INFO))
    return [each.removeprefix(_SERVERS) for each in infos if f"{each}{_TTL}" not in keys]


def forget(etcd: EtcdClient, server: str) -> None:
    """Delete what a server has left behind. Raises Unavailable, ApiError, LeaseExpired."""
    etcd.delete(f"{_SERVERS}{server}{_INFO}")


def tell(etcd: EtcdClient, addresses: Mapping[str, tuple[str, int]]) -> None:
    """Write host and port of `prometheus` and `grafana` where none is known, or soon will not be any more.

    The address of another monitor stays as long as that goes on telling it; in v1.6 two monitors replace each other's
    for ever. Raises Unavailable, ApiError, LeaseExpired; NotFound as `EtcdClient.below`.
    """
    wanted = {f"{_ROOT}/{name}": {"ip": host, "port": port} for name, (host, port) in addresses.items()}
    values = {key: msgspec.json.encode(value) for key, value in wanted.items()}
    outdated = {key: value for key, value in values.items() if not _is_known(etcd, key, value)}
    lease = etcd.grant(_LEASE) if outdated else 0
    for key, value in outdated.items():
        etcd.put(key, value, lease)


def _is_known(etcd: EtcdClient, key: str, value: bytes) -> bool:
    """Whether a value is there that has still some time, or one of somebody else that has any."""
    known = etcd.entry(key)
    if known is None or not known.lease:
        return known is not None and known.value == value
    return etcd.seconds_left(known.lease) > (_LEASE // 2 if known.value == value else 0)
