"""Who serves as the primary of a microservice, and how it hands over before its pod goes (lifecycle.md 7.8)."""

from dataplane.pd import Microservice
from member import api_clients
from member.context import ReconcileContext
from member.naming import address_book, ordinal_of
from member.outcome import Waiting
from member.pdms.status import members
from member.polling import next_poll


def hand_over(ctx: ReconcileContext, name: str, pod: str, reason: str) -> Waiting | None:
    """Let another member be the primary before a pod is restarted or goes; None when it is not, or can't be another.

    v1.6 goes on at once; here PD must name another one first. Members without names, those before v8.3.0, cannot hand
    over, whatever version the spec asks for. Raises DataPlaneError.
    """
    there = members(ctx, name) or ()
    if not there or any(each.name == each.address for each in there):
        return None
    pd, book = api_clients.pd(ctx), address_book(ctx.tc)
    own = ordinal_of(pod)
    if book.ordinal_of(name, pd.microservice_primary(name)) != own:
        return None
    others = [(book.ordinal_of(name, each.address), each) for each in there]
    target = _target(own, [(ordinal, each) for ordinal, each in others if ordinal is not None and ordinal != own])
    if target is None:
        return None
    api_clients.pdms(ctx, name).transfer_primary(target.name)
    what = f"waiting until {target.name} is the primary of {name} in place of pod {pod}"
    return Waiting(reason, what, next_poll(ctx, name))


def _target(own: int, others: list[tuple[int, Microservice]]) -> Microservice | None:
    """The highest one above, which is restarted already; else the lowest."""
    above = [each for each in others if each[0] > own]
    if above:
        return max(above, key=lambda each: each[0])[1]
    return min(others, key=lambda each: each[0])[1] if others else None
