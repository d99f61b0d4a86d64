"""What may not change any more in a DMCluster, judged by what there is of its masters (lifecycle.md R25)."""

from collections.abc import Iterable, Iterator, Mapping

from apis.dmcluster import DMCluster
from apis.identity import tls_enabled
from apis.problem import Problem
from apis.shared import Json
from apis.validation.changes import speaks_tls

_MASTER = "dm-master"
_FIELD = "spec.tlsCluster.enabled"


def check(dc: DMCluster, stateful_sets: Mapping[str, Json], left_behind: Iterable[str]) -> Iterator[Problem]:
    """Problems of a defaulted cluster, given its StatefulSets by component.

    `left_behind` are the configurations, as TOML, of masters that are suspended.
    """
    wanted, live = tls_enabled(dc), stateful_sets.get(_MASTER)
    speak_tls = _speak_tls(dc) if live else speaks_tls(left_behind, "ssl-ca")
    if speak_tls is None or wanted == speak_tls:
        return
    back = f"set it back to {str(speak_tls).lower()}"
    if live is None:
        why = "while the masters are suspended, because they know each other by their URLs"
        yield Problem(_FIELD, wanted, f"cannot be changed {why}; {back}, and resume the cluster")
    elif max(len(dc.status.master.members), live["spec"].get("replicas", 1)) > 1:
        why = "while there is more than one master, because those with and without TLS do not understand each other"
        way_out = f"{back}, and scale spec.master to 1 before changing it"
        yield Problem(_FIELD, wanted, f"cannot be changed {why}; {way_out}")


def _speak_tls(dc: DMCluster) -> bool | None:
    """Whether the masters speak TLS; None when none was ever up, or they differ."""
    schemes = {each.client_url.partition("://")[0] for each in dc.status.master.members.values() if each.client_url}
    return schemes == {"https"} if len(schemes) == 1 else None
