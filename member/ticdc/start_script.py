"""TiCDC's start script, which stands in its command (objects.md 7.7)."""

from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from member.startscript import options
from member.startscript.fragments import assemble, fragment, settings
from member.ticdc import configuration


def script(tc: TidbCluster) -> str:
    """The text. Only pods of the second version have the annotations that the prologue reads."""
    return assemble(
        "#!/bin/sh",
        "Starts TiCDC in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue") if options.is_v2(tc) else f"set -u\n{_own('pod_name')}",
        options.names(tc, "ticdc", literal=True) + _pd(tc) + _flags(tc),
        options.verified_pd(tc, "ticdc", with_scheme=True) if options.asks_discovery(tc) else "",
        _own("start"),
        _own("certificates") if tls_enabled(tc) else "",
        _own("configuration") if configuration.file(tc) else "",
        _own("run"),
    )


def _own(name: str) -> str:
    return fragment(name, __package__)


def _pd(tc: TidbCluster) -> str:
    """Sets PD; addresses that are preferred to Discovery stay as they are written (7.3)."""
    if options.preferred_pd(tc, v2=options.is_v2(tc)):
        return settings(PD=",".join(tc.spec.pd_addresses))
    return options.pd_address(tc, with_scheme=True)


def _flags(tc: TidbCluster) -> str:
    return settings(
        GC_TTL=configuration.gc_ttl(tc),
        LOG_FILE=configuration.log_file(tc),
        LOG_LEVEL=configuration.log_level(tc),
    )
