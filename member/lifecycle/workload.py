"""The behaviour of a component that runs in a StatefulSet, as verbs; its facts are in `apis.components`.

Most verbs have a default that fits a stateless server, so that a component says only what is its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from apis import predicates
from apis.ordinals import desired_replicas
from apis.tidbcluster import TidbCluster
from kube.objects import Json, Object
from member.availability import Verdict
from member.commands.annotations import Command
from member.context import ClusterContext, OwnCluster, OwnContext
from member.lifecycle import stateless
from member.lifecycle.rolling import Rolling
from member.lifecycle.scaling import Scaling
from member.objects.config_map import Content
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll

CommandAct: TypeAlias = Callable[[OwnContext, Object, Command], Outcome]
"""One step of what an annotation of a pod asks for."""


def _nothing(_: ClusterContext) -> None:
    return None


def _used(_: TidbCluster) -> str:
    return ""


def _as_it_is(_: TidbCluster, made: Json) -> Json:
    return made


def _done(_: ClusterContext) -> Outcome:
    return Done()


def _not_located(_ctx: ClusterContext, _pod: str, _labels: Mapping[str, str]) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A component as verbs.

    `observe` brings its status up to date, with reads alone. `observe_elsewhere` looks at the one of another cluster,
    for a cluster that lacks the component. `outage` is the verdict on it where it serves no more, by default that no
    server is healthy. `gate` says what must be there first, beside the components that it starts
    after; `unused` why nothing is made for it though the spec has it; `services`, `content`
    and `stateful_set` what is desired; `scaling` how it grows and shrinks, `rolling` how its pods are restarted,
    `failover` how lost ones are replaced; `serving` what it still lacks when all its pods are Ready, by default healthy
    members; `housekeeping` what else is to do in each reconcile, None when nothing. `locate` tells one server by its
    labels where it runs; it is called for those of which `ComponentType.located_since` says that they know labels.
    `commands` are what annotations of single pods ask for. Where v1.6 ignores something of the spec, `made_by_v16`
    makes its StatefulSet of ours, and `configured_by_v16` says what it configures.
    """

    name: str
    observe: Callable[[OwnContext], Outcome]
    services: Callable[[OwnCluster], Sequence[Json]]
    content: Callable[[OwnCluster], Content]
    stateful_set: Callable[[OwnCluster, str], Json]
    outage: Callable[[OwnContext], Verdict | None] | None = None
    observe_elsewhere: Callable[[OwnContext], Outcome] = _done
    unused: Callable[[OwnCluster], str] = _used
    gate: Callable[[OwnContext], Waiting | Refused | None] = _nothing
    scaling: Scaling = stateless.SCALING
    rolling: Rolling = field(default_factory=Rolling)
    failover: Callable[[OwnContext], Outcome] = _done
    serving: Callable[[OwnContext], Outcome] | None = None
    housekeeping: Callable[[OwnContext], Outcome | None] = _nothing
    locate: Callable[[OwnContext, str, Mapping[str, str]], None] = _not_located
    commands: Mapping[str, CommandAct] = field(default_factory=dict)
    made_by_v16: Callable[[OwnCluster, Json], Json] = _as_it_is
    configured_by_v16: Callable[[OwnCluster], Content] | None = None

    def content_of_v16(self, tc: OwnCluster) -> Content:
        """What v1.6 configures."""
        return (self.configured_by_v16 or self.content)(tc)


def members_ready(ctx: ClusterContext, name: str) -> Outcome:
    """Whether a component has as many members as wanted, each of them well."""
    if predicates.all_members_ready(ctx.tc, name):
        count = desired_replicas(ctx.tc, name)
        return Done(f"{count} of {count} members are healthy")
    return Waiting("MembersNotReady", f"waiting for all members of {name} to be healthy", next_poll(ctx, name))
