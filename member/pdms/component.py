"""tso and scheduling, the microservices of a PD with `spec.pd.mode: ms` (lifecycle.md 6.2).

They exist only with such a PD. When the user ends the mode, PD's pods restart first, and the microservices go after PD
has taken over their work; v1.6 removes them at once.
"""

from dataclasses import replace
from functools import partial

from apis import predicates
from apis.tidbcluster import TidbCluster
from dataplane.addresses import AddressBook
from kube.objects import Object
from member.context import ReconcileContext
from member.lifecycle import stateless
from member.lifecycle.rolling import Rolling
from member.lifecycle.scaling import Scaling
from member.lifecycle.workload import Workload
from member.naming import address_book, ordinal_of
from member.outcome import NotDone, Waiting
from member.pdms import desired, scaling
from member.pdms.scaling import hand_over
from member.pdms.status import observe
from member.polling import next_poll


def _unused(tc: TidbCluster) -> str:
    return "" if predicates.uses_microservices(tc) else "not used unless spec.pd.mode is ms"


def _blocked(name: str, ctx: ReconcileContext) -> Waiting | None:
    if predicates.is_synced(ctx.tc, name):
        return None
    what = f"waiting for PD to report the members of {name} before restarting its pods"
    return Waiting("PDMembersUnknown", what, next_poll(ctx, name))


def _unmet_condition(name: str, ctx: ReconcileContext, pod: Object) -> str:
    status, book = ctx.status.pdms.get(name), address_book(ctx.tc)
    return "" if status and _is_member(book, name, status.members, pod) else "is registered in PD"


def _is_member(book: AddressBook, name: str, members: list[str], pod: Object) -> bool:
    return any(book.ordinal_of(name, member) == ordinal_of(pod.metadata.name) for member in members)


async def _prepare(name: str, ctx: ReconcileContext, pod: Object) -> NotDone | None:
    return await hand_over(ctx, name, pod.metadata.name)


def _microservice(name: str) -> Workload:
    return Workload(
        name=name,
        observe=lambda ctx: observe(ctx, name),
        services=lambda tc: desired.services(tc, name),
        content=lambda tc: desired.content(tc, name),
        stateful_set=lambda tc, config_map: desired.stateful_set(tc, name, config_map),
        unused=_unused,
        scaling=Scaling(stateless.SCALING.out, replace(stateless.SCALING.in_, drain=scaling.drain)),
        rolling=Rolling(
            blocked=partial(_blocked, name),
            unmet_condition=partial(_unmet_condition, name),
            prepare=partial(_prepare, name),
        ),
        as_built_by_v16=lambda tc, made: desired.as_built_by_v16(tc, name, made),
    )


TSO = _microservice("tso")
SCHEDULING = _microservice("scheduling")
