"""The present status of a PD microservice (lifecycle.md 5.2). Reads only; PD knows the members."""

from collections.abc import Callable, Iterator
from functools import partial

from apis.accessor import find
from apis.component_statuses import PDMSStatus
from apis.predicates import actual_replicas, uses_microservices
from dataplane.errors import DataPlaneError
from dataplane.pd import Microservice, PDReads
from kube.resources import STATEFUL_SETS
from member import api_clients
from member.context import ReconcileContext
from member.naming import address_book, member_name
from member.observed.status import observe_pods
from member.outcome import Done, Failed, Outcome, Waiting
from member.polling import next_poll

TSO = "tso"


def observe(ctx: ReconcileContext, name: str) -> Outcome:
    """Update `status.pdms.<name>`. Unlike in v1.6 it is unsynced if PD or tso does not answer."""
    if find(ctx.tc, name) is None:
        return Done()
    if not uses_microservices(ctx.tc) and ctx.stateful_set(name) is None:
        _forget_if_gone(ctx, name)
        return Done()
    status = ctx.status.pdms.setdefault(name, PDMSStatus(name=name))
    status.synced = False
    if observe_pods(ctx, name, status) is None:
        status.members = []
        return Done()
    if not uses_microservices(ctx.tc) and not actual_replicas(ctx.tc, name):
        status.members, status.synced = [], True
        return Done()
    if not ctx.status.pd.synced:
        return Waiting("PDNotAnswering", f"the members of {name} are unknown while PD does not answer")
    outcome = _ask(ctx, name, status)
    status.synced = isinstance(outcome, Done)
    return outcome


def _forget_if_gone(ctx: ReconcileContext, name: str) -> None:
    """Clear the status of a suspended microservice, once a live read shows that it is gone (F1)."""
    status = ctx.status.pdms.get(name)
    if status is None or not status.stateful_set:
        return
    if ctx.deps.client.find(STATEFUL_SETS, member_name(ctx.tc, name), ctx.namespace) is None:
        del ctx.status.pdms[name]


def _ask(ctx: ReconcileContext, name: str, status: PDMSStatus) -> Outcome:
    pd = api_clients.pd_answers(ctx)
    api_clients.ask_ahead(ctx, _questions(ctx, pd))
    try:
        microservices = members(ctx, name, pd)
        status.members = sorted(microservice.address for microservice in microservices or ())
        if not uses_microservices(ctx.tc):
            return Done()
        if microservices is None:
            what = "PD was not started in microservice mode yet, and lists no members"
            restart = f"{what}; waiting for its pods to be restarted"
            return Waiting("PDWithoutMicroservices", restart, next_poll(ctx, name))
        if name == TSO and not _has_primary(ctx, name, pd):
            return Waiting("NoPrimary", f"{name} has no primary and gives no timestamps", next_poll(ctx, name))
    except DataPlaneError as error:
        return Failed("PDUnreachable", str(error))
    return Done()


def _questions(ctx: ReconcileContext, pd: PDReads) -> Iterator[Callable[[], object]]:
    """The reads of PD about all running microservices."""
    for pdmsspec in ctx.tc.spec.pdms:
        if ctx.stateful_set(pdmsspec.name):
            yield partial(pd.microservice_members, pdmsspec.name)
    if uses_microservices(ctx.tc) and ctx.stateful_set(TSO):
        yield partial(pd.microservice_primary, TSO)


def _has_primary(ctx: ReconcileContext, name: str, pd: PDReads) -> bool:
    """True if the member that PD names as the primary is healthy.

    It is asked directly, not through the Service: of three members PD lets only two serve.
    """
    primary = pd.microservice_primary(name)
    return bool(primary) and api_clients.pdms_member(ctx, name, primary).healthy()


def members(ctx: ReconcileContext, name: str, pd: PDReads) -> list[Microservice] | None:
    """The members that are pods of this cluster, as PD lists them; None if PD is not in microservice mode.

    Raises DataPlaneError.
    """
    book, microservices = address_book(ctx.tc), pd.microservice_members(name)
    if microservices is None:
        return None
    return [microservice for microservice in microservices if book.ordinal_of(name, microservice.address) is not None]
