"""A member whose peer URL is from before `spec.tlsCluster.enabled` was changed: nobody can join through it.

etcd keeps the URL with which a member has joined; only `etcdctl member update` changes it. A single member needs no
peers, so nothing is wrong with it until a second one is to come.
"""

from apis.identity import scheme
from dataplane.pd import Member
from member import api_clients
from member.context import ReconcileContext
from member.outcome import Waiting
from member.polling import next_poll


def outdated(ctx: ReconcileContext) -> Waiting | None:
    """What is to be done before PD grows; None where nothing is. Raises DataPlaneError."""
    if len(ctx.status.pd.members) != 1:
        # TLS is changed where a single member runs, and several have joined by URLs that work
        return None
    wanted = f"{scheme(ctx.tc)}://"
    old = [each for each in api_clients.pd(ctx).members().members if _is_outdated(each, wanted)]
    if not old:
        return None
    member, url = old[0], old[0].peer_urls[0]
    new = wanted + url.partition("://")[2]
    what = f"PD member {member.name} has joined as {url}, where no other can reach it since TLS was switched"
    update = f"etcdctl member update {member.id:x} --peer-urls={new}"
    return Waiting("PeerURLOutdated", f"{what}; run `{update}` before PD grows", next_poll(ctx, "pd"))


def _is_outdated(member: Member, wanted: str) -> bool:
    return bool(member.peer_urls) and not any(url.startswith(wanted) for url in member.peer_urls)
