"""TiProxy's start script (objects.md 7.7)."""

from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.startscript import options
from member.startscript.fragments import assemble, fragment


def script(tc: TidbCluster) -> str:
    """The text of `start.sh`; the same for both versions of scripts."""
    return assemble(
        "#!/bin/sh",
        "Starts TiProxy in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "tiproxy", literal=True),
        fragment("start", __package__),
    )


def script_options(tc: TidbCluster) -> Json:
    """What of the spec shows in it."""
    return {"clusterDomain": tc.spec.cluster_domain} if tc.spec.cluster_domain else {}
