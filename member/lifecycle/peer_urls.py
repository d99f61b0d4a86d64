"""A member whose peer URL is from before `spec.tlsCluster.enabled` was changed: nobody can join through it.

etcd keeps the URL with which a member has joined; only `etcdctl member update` changes it. A single member needs no
peers, so nothing is wrong with it until a second one is to come.
"""

from collections.abc import Sequence

from apis.components import component_type
from apis.identity import scheme
from member.context import ClusterContext
from member.outcome import Waiting
from member.polling import next_poll


def outdated(ctx: ClusterContext, component: str, name: str, ident: int, urls: Sequence[str]) -> Waiting | None:
    """What is to be done before a component grows that has a single member, in etcd `ident`; None where nothing is."""
    wanted, title = f"{scheme(ctx.tc)}://", component_type(component).title
    if not urls or any(url.startswith(wanted) for url in urls):
        return None
    new = wanted + urls[0].partition("://")[2]
    what = f"{title} member {name} has joined as {urls[0]}, where no other can reach it since TLS was switched"
    update = f"etcdctl member update {ident:x} --peer-urls={new}"
    return Waiting("PeerURLOutdated", f"{what}; run `{update}` before {title} grows", next_poll(ctx, component))
