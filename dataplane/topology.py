"""The topology that TiDB Dashboard reads from PD's etcd: TiDB servers and monitors (dataplane-apis.md 4)."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from dataplane.etcd import EtcdClient

_ROOT = "/topology"
_SERVERS = f"{_ROOT}/tidb/"
_INFO, _TTL = "/info", "/ttl"
_OF_SERVER = re.compile(rf"{_SERVERS}([\w.:\[\]-]{{1,300}}){_INFO}")
"""The key of a server's description. PD may announce any other key."""
_LEASE = 600
"""Seconds for which a monitor's address stays registered after the last write, as in v1.6."""


def stale_servers(etcd: EtcdClient) -> Sequence[str]:
    """The servers (`host:port`) that ended without deregistering. Raises Unavailable, ApiError; NotFound as `below`."""
    keys = etcd.below(_SERVERS)
    servers = (match[1] for key in keys if (match := _OF_SERVER.fullmatch(key)))
    return [server for server in servers if f"{_SERVERS}{server}{_TTL}" not in keys]


def forget(etcd: EtcdClient, server: str) -> None:
    """Delete the records of a server that ended. Raises Unavailable, ApiError, LeaseExpired."""
    etcd.delete(f"{_SERVERS}{server}{_INFO}")


def publish(etcd: EtcdClient, addresses: Mapping[str, tuple[str, int]]) -> None:
    """Register host and port of `prometheus` and `grafana` if no address is registered, or its lease expires soon.

    Another monitor's address stays as long as that monitor renews it; in v1.6 two monitors overwrite each other for
    ever. Raises Unavailable, ApiError, LeaseExpired; NotFound as `EtcdClient.below`.
    """
    wanted = {f"{_ROOT}/{name}": {"ip": host, "port": port} for name, (host, port) in addresses.items()}
    values = {key: msgspec.json.encode(value) for key, value in wanted.items()}
    outdated = {key: value for key, value in values.items() if not _is_known(etcd, key, value)}
    lease = etcd.grant(_LEASE) if outdated else 0
    for key, value in outdated.items():
        etcd.put(key, value, lease)


def _is_known(etcd: EtcdClient, key: str, value: bytes) -> bool:
    """True if this value is registered and has time left, or if another monitor's value is registered."""
    known = etcd.entry(key)
    if known is None or not known.lease:
        return known is not None and known.value == value
    return etcd.seconds_left(known.lease) > (_LEASE // 2 if known.value == value else 0)
