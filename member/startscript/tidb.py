"""TiDB's start script (objects.md 7.6)."""

from collections.abc import Iterable

from apis.component_specs import TiDBSpec
from apis.tidbcluster import TidbCluster
from member.startscript import options
from member.startscript.fragments import assemble, fragment, settings
from member.startscript.shell import expanding_strings


def tidb_script(tc: TidbCluster) -> str:
    """The text of `tidb_start_script.sh`; `spec.tidb` is set."""
    tidb = tc.spec.tidb
    assert tidb is not None
    v2 = options.is_v2(tc)
    return assemble(
        "#!/bin/sh",
        "Starts TiDB in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "tidb", literal=v2) + options.pd_address(tc, with_scheme=False),
        options.verified_pd(tc, "tidb", with_scheme=False) if options.asks_discovery(tc) else "",
        fragment("tidb_arguments"),
        *(_optional_v2(tc, tidb) if v2 else _optional_v1(tidb)),
        _extra(tidb.arguments),
        fragment("tidb_start"),
    )


def _optional_v1(tidb: TiDBSpec) -> list[str]:
    return [fragment("tidb_binlog_by_environment"), fragment("tidb_slow_log"), _plugins(tidb, "tidb_plugins_v1")]


def _optional_v2(tc: TidbCluster, tidb: TiDBSpec) -> list[str]:
    binlog = tc.spec.pump is not None if tidb.binlog_enabled is None else tidb.binlog_enabled
    return [
        fragment("tidb_binlog") if binlog else "",
        _plugins(tidb, "tidb_plugins_v2"),
        fragment("tidb_slow_log"),
    ]


def _plugins(tidb: TiDBSpec, name: str) -> str:
    return settings(PLUGINS=",".join(tidb.plugins)) + fragment(name) if tidb.plugins else ""


def _extra(arguments: Iterable[str]) -> str:
    """The words of `spec.tidb.arguments`: as in v1.6, split at white space, with variables of the pod's environment."""
    words = [word for argument in arguments for word in expanding_strings(argument)]
    return f'set -- "$@" {" ".join(words)}\n' if words else ""
