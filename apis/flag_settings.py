"""Settings that the flags of start scripts override: what a configuration file says there has no effect (objects.md 7).

Data of the table in `apis.components`; `member.fields.settings` names those that a user has written.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_REMOVE = "remove it"


@dataclass(frozen=True, slots=True)
class FlagSetting:
    """A setting that a flag overrides: `path` in the configuration file, empty where the file has no such setting.

    `instead` is the way out. `sometimes`: only some start scripts have the flag. `founding`: it says how members find
    each other at their first start; PD and DM-master do not start with the setting beside a flag that says so, too.
    """

    path: str = ""
    instead: str = _REMOVE
    sometimes: bool = False
    founding: bool = False


FlagSettings = Mapping[str, FlagSetting]
"""The settings by flag, without its dashes."""

NO_SETTING = FlagSetting()


def _same(*flags: str) -> dict[str, FlagSetting]:
    """Flags that are named like the setting."""
    return {flag: FlagSetting(flag) for flag in flags}


def _data_dir(component: str, path: str = "data-dir") -> dict[str, FlagSetting]:
    return {"data-dir": FlagSetting(path, f"remove it, or name a directory below with spec.{component}.dataSubDir")}


_FILE = {"config": NO_SETTING}
_FOUNDING = {flag: FlagSetting(flag, sometimes=True, founding=True) for flag in ("join", "initial-cluster")}
_ELSEWHERE = "remove it; spec.cluster names the cluster of another PD"

OF_PD: FlagSettings = {
    **_FILE,
    **_data_dir("pd"),
    **_same("name", "peer-urls", "advertise-peer-urls", "client-urls", "advertise-client-urls"),
    **_FOUNDING,
}
OF_PD_MICROSERVICE: FlagSettings = {
    **_FILE,
    **_same("listen-addr", "advertise-listen-addr", "backend-endpoints"),
    "name": FlagSetting("name", sometimes=True),
}
OF_TIKV: FlagSettings = {
    **_FILE,
    **_data_dir("tikv", "storage.data-dir"),
    "pd": FlagSetting("pd.endpoints", _ELSEWHERE),
    "addr": FlagSetting("server.addr"),
    "advertise-addr": FlagSetting("server.advertise-addr"),
    "status-addr": FlagSetting("server.status-addr"),
    "advertise-status-addr": FlagSetting("server.advertise-status-addr", sometimes=True),
    "capacity": FlagSetting("raftstore.capacity", "set spec.tikv.limits.storage"),
    "labels": FlagSetting("server.labels", sometimes=True),
}
OF_TIDB: FlagSettings = {
    **_FILE,
    **_same("store", "host", "advertise-address"),
    "path": FlagSetting("path", _ELSEWHERE),
    "log-slow-query": FlagSetting(
        "log.slow-query-file", "remove it, or set spec.tidb.separateSlowLog to false to log to this file", True
    ),
    "enable-binlog": FlagSetting("binlog.enable", "set spec.tidb.binlogEnabled", True),
    "plugin-dir": FlagSetting("plugin.dir", sometimes=True),
    "plugin-load": FlagSetting("plugin.load", "list it in spec.tidb.plugins", True),
}
OF_TIFLASH: FlagSettings = {
    "config-file": NO_SETTING,
    "labels": NO_SETTING,
    "flash.proxy.advertise-addr": FlagSetting("flash.proxy.advertise-addr", sometimes=True),
    "flash.proxy.advertise-status-addr": FlagSetting("flash.proxy.advertise-status-addr", sometimes=True),
    "flash.service_addr": FlagSetting("flash.service_addr", sometimes=True),
    "raft.pd_addr": FlagSetting("raft.pd_addr", _ELSEWHERE, sometimes=True),
}
OF_TICDC: FlagSettings = {
    **_FILE,
    **_same("addr", "advertise-addr", "gc-ttl", "log-file", "log-level"),
    "pd": FlagSetting("pd", _ELSEWHERE),
    "ca": FlagSetting("security.ca-path", sometimes=True),
    "cert": FlagSetting("security.cert-path", sometimes=True),
    "key": FlagSetting("security.key-path", sometimes=True),
    "newarch": FlagSetting("newarch", sometimes=True),
}
OF_TICI: FlagSettings = {
    **_FILE,
    **dict.fromkeys(("host", "port", "status-port", "advertise-host"), NO_SETTING),
    "pd-addr": FlagSetting("server.pd-addr"),
}
OF_PUMP: FlagSettings = {
    **_FILE,
    **_same("advertise-addr", "data-dir", "log-file"),
    "pd-urls": FlagSetting("pd-urls", _ELSEWHERE),
    "L": FlagSetting("log-level"),
}
OF_TIPROXY: FlagSettings = {**_FILE, "advertise-addr": NO_SETTING}
OF_DM_MASTER: FlagSettings = {
    **_FILE,
    **_data_dir("master"),
    **_same("name", "peer-urls", "advertise-peer-urls", "master-addr", "advertise-addr"),
    **_FOUNDING,
}
OF_DM_WORKER: FlagSettings = {**_FILE, "labels": NO_SETTING, **_same("name", "join", "advertise-addr", "worker-addr")}
OF_NG_MONITORING: FlagSettings = {
    **_FILE,
    **_same("pd.endpoints", "advertise-address", "storage.path"),
    "retention-period": FlagSetting("tsdb.retention-period", "set spec.ngMonitoring.retentionPeriod alone", True),
}
