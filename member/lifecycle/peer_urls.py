"""Members that joined before `spec.tlsCluster.enabled` changed: no other member can reach their peer URLs.

etcd keeps the URL with which a member joined, and only `etcdctl member update` changes it. A single member needs no
peers, so the URL does no harm until a second member joins.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from apis.components import component_type
from apis.identity import scheme
from member.context import ClusterContext
from member.outcome import Waiting
from member.polling import next_poll

Joined: TypeAlias = tuple[str, int, Sequence[str]]
"""The name of a member, its id in etcd, and its peer URLs."""


def outdated(ctx: ClusterContext, component: str, members: Iterable[Joined]) -> Waiting | None:
    """The wait for the user to update an outdated peer URL before the component grows; None if none is outdated."""
    wanted, title = f"{scheme(ctx.tc)}://", component_type(component).title
    for name, ident, urls in members:
        if not urls or any(url.startswith(wanted) for url in urls):
            continue
        new = wanted + urls[0].partition("://")[2]
        what = f"{title} member {name} has joined as {urls[0]}, where no other can reach it since TLS was switched"
        update = f"etcdctl member update {ident:x} --peer-urls={new}"
        return Waiting("PeerURLOutdated", f"{what}; run `{update}` before {title} grows", next_poll(ctx, component))
    return None
