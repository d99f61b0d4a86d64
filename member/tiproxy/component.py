"""TiProxy: starts and restarts independently of other components (lifecycle.md 6.3, 7.8)."""

from collections.abc import Mapping

from apis import predicates
from apis.tidbcluster import TidbCluster
from kube.objects import Object
from member.actions import SetServerLabels
from member.context import ReconcileContext
from member.lifecycle.rolling import Rolling
from member.lifecycle.workload import Workload
from member.outcome import Done, Outcome, Refused, Waiting
from member.polling import next_poll
from member.tiproxy import desired
from member.tiproxy.status import observe, proxies


async def _gate(ctx: ReconcileContext) -> Refused | None:
    return across_kubernetes(ctx.tc)


def across_kubernetes(tc: TidbCluster) -> Refused | None:
    """The refusal of TiProxy in a cluster across Kubernetes, a pure function of the spec."""
    if tc.spec.tiproxy is None or not tc.spec.across_k8s:
        return None
    what = "spec.tiproxy is set, but TiProxy cannot be part of a cluster across Kubernetes"
    return Refused("AcrossKubernetes", f"{what}; remove it, or set spec.acrossK8s to false")


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    """Without a probe a pod is Ready before it serves: v1.6 restarts the next one then."""
    member = ctx.status.tiproxy.members.get(pod.metadata.name)
    return "" if member and member.health else "serves"


def _serving(ctx: ReconcileContext) -> Outcome:
    members = ctx.status.tiproxy.members
    if predicates.all_members_ready(ctx.tc, "tiproxy"):
        return Done(f"{len(members)} of {len(members)} proxies are healthy")
    ill = ", ".join(name for name, member in members.items() if not member.health)
    return Waiting("TiProxyUnhealthy", f"waiting for {ill or 'all proxies'} to be healthy", next_poll(ctx, "tiproxy"))


def _locate(ctx: ReconcileContext, pod: str, labels: Mapping[str, str]) -> SetServerLabels:
    return SetServerLabels(proxies(ctx).client(pod), labels)


ROLLING = Rolling(unmet_condition=_unmet_condition)

TIPROXY = Workload(
    name="tiproxy",
    observe=observe,
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    rolling=ROLLING,
    locate=_locate,
    as_built_by_v16=desired.as_built_by_v16,
)
