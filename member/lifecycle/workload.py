"""The behaviour of a component that runs in a StatefulSet, as verbs; its facts are in `apis.components`.

Most verbs have a default that fits a stateless server, so a component defines only its differences.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from apis import predicates
from apis.ordinals import desired_ordinals, desired_replicas
from apis.tidbcluster import TidbCluster
from kube.actions import Action, Decision
from kube.objects import Json, Object
from member.availability import Verdict
from member.context import ClusterContext, OwnCluster, OwnContext
from member.lifecycle import stateless
from member.lifecycle.rolling import Rolling
from member.lifecycle.scaling import Scaling
from member.objects.config_map import Content
from member.observed.command_annotations import Command
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll

CommandAct: TypeAlias = Callable[[OwnContext, Object, Command], Decision[Outcome]]
"""One step of a command that the user gives by an annotation of a pod."""


async def _nothing(_: ClusterContext) -> None:
    return None


def _used(_: TidbCluster) -> str:
    return ""


def _as_it_is(_: TidbCluster, made: Json) -> Json:
    return made


def _done(_: ClusterContext) -> Outcome:
    return Done()


async def _none_fails(_: ClusterContext) -> Outcome:
    return Done()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A component as verbs.

    Status: `observe` updates it, with reads only. `observe_elsewhere` does so in a cluster that lacks the component,
    for the one of the cluster that it refers to. `outage` is the verdict on a component that no longer serves; by
    default, an outage means that no server is healthy. `serving`: what the component lacks although all pods are Ready;
    by default, healthy members.

    Desired state: `gate` says what must exist first, in addition to the components that it starts after. `unused` says
    why a component in the spec needs no objects. `services`, `content` and `stateful_set` build the objects.

    Actions: `scaling` grows and shrinks it, `rolling` restarts its pods, `failover` replaces lost pods. `housekeeping`
    is other work in each reconcile, None if there is none. `locate` returns the action that sends a server the labels
    of its node, if its version accepts labels (`ComponentType.located_since`). `commands` run what annotations of
    single pods request.

    Upgrades from v1.6, which ignores parts of the spec: `as_built_by_v16` turns this version's StatefulSet into
    v1.6's, and `configured_by_v16` returns v1.6's configuration.
    """

    name: str
    observe: Callable[[OwnContext], Outcome]
    services: Callable[[OwnCluster], Sequence[Json]]
    content: Callable[[OwnCluster], Content]
    stateful_set: Callable[[OwnCluster, str], Json]
    outage: Callable[[OwnContext], Verdict | None] | None = None
    observe_elsewhere: Callable[[OwnContext], Outcome] = _done
    unused: Callable[[OwnCluster], str] = _used
    gate: Callable[[OwnContext], Decision[Waiting | Refused | None]] = _nothing
    scaling: Scaling = stateless.SCALING
    rolling: Rolling = field(default_factory=Rolling)
    failover: Callable[[OwnContext], Decision[Outcome]] = _none_fails
    serving: Callable[[OwnContext], Outcome] | None = None
    housekeeping: Callable[[OwnContext], Decision[Outcome | None]] = _nothing
    locate: Callable[[OwnContext, str, Mapping[str, str]], Action[None]] | None = None
    commands: Mapping[str, CommandAct] = field(default_factory=dict)
    as_built_by_v16: Callable[[OwnCluster, Json], Json] = _as_it_is
    configured_by_v16: Callable[[OwnCluster], Content] | None = None

    def designed_services(self, ctx: ClusterContext) -> list[Json]:
        """The desired Services, built once for each spec."""
        made: list[Json] = ctx.designed_tree((self.name, "services"), lambda: {"": self.services(ctx.tc)})[""]
        return made

    def designed_content(self, ctx: ClusterContext) -> Content:
        """The desired content of the ConfigMap, built once for each spec."""
        return ctx.designed((self.name, "content"), lambda: self.content(ctx.tc))

    def designed_stateful_set(self, ctx: ClusterContext, config_map: str) -> Json:
        """The desired StatefulSet, built once for each spec, ConfigMap and set of ordinals."""
        what = self.name, config_map, desired_ordinals(ctx.tc, self.name)
        return ctx.designed_tree(what, lambda: self.stateful_set(ctx.tc, config_map))

    def content_of_v16(self, tc: OwnCluster) -> Content:
        """The configuration that v1.6 writes."""
        return (self.configured_by_v16 or self.content)(tc)


def members_ready(ctx: ClusterContext, name: str) -> Outcome:
    """Done if the component has as many members as wanted and all are healthy; else the wait for them."""
    if predicates.all_members_ready(ctx.tc, name):
        count = desired_replicas(ctx.tc, name)
        return Done(f"{count} of {count} members are healthy")
    return Waiting("MembersNotReady", f"waiting for all members of {name} to be healthy", next_poll(ctx, name))
