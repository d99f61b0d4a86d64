"""What the components do in a roll beside what all of them do."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from kube.objects import Json, Object
from member.context import OwnContext
from member.evidence import Evidence, Spared, spared
from member.outcome import NotDone


def _nothing_to_do(*_: object) -> None:
    return None


def _unrouted(_: OwnContext, pod: str) -> Spared:
    """Of a component without votes and data: Services lead to none of its pods that is not Ready."""
    return spared(pod, "it is not Ready, so no Service leads to it")


@dataclass(frozen=True, slots=True)
class Silence:
    """The data plane does not say whether a pod is needed: a reason, what is not known, and what a user can do."""

    reason: str
    what: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Rolling:
    """What one component does before and after the restart of its pods.

    `blocked`: what comes first beside the upgrades of other components. `begin`: what must be done before a new
    template, the second, may take the place of the running one. `unmet_condition`: what a Ready pod on the new revision
    still lacks before the next one may go, as an end of "waiting until <pod> ..."; empty when nothing. `prepare`: moves
    away what a Ready pod serves. `resume`: gives pods back what was moved away, except the named one, which is next;
    called in every reconcile. `finish`: what is left to do when all pods run the newest template; called in every
    reconcile then. All of these answer None when there is nothing (more) to do, and cost nothing then.
    `spare`: whether the data plane gets along without a pod that is not Ready, having moved away what the pod serves;
    a Silence where the data plane cannot be asked, as a DataPlaneError is taken for, too.
    `ignored_pods`: names of pods that a roll does not wait for, such as those that failover has replaced. `forced`:
    evidence that the data plane can't be looked at, where the user wants the pods restarted all the same.
    """

    blocked: Callable[[OwnContext], NotDone | None] = _nothing_to_do
    unmet_condition: Callable[[OwnContext, Object], str] = lambda _ctx, _pod: ""
    prepare: Callable[[OwnContext, Object], NotDone | None] = _nothing_to_do
    ignored_pods: Callable[[OwnContext], Collection[str]] = lambda _: ()
    begin: Callable[[OwnContext, Json, Json], NotDone | None] = _nothing_to_do
    resume: Callable[[OwnContext, str], NotDone | None] = _nothing_to_do
    finish: Callable[[OwnContext], NotDone | None] = _nothing_to_do
    spare: Callable[[OwnContext, str], Spared | Silence | NotDone] = _unrouted
    forced: Callable[[OwnContext], Evidence | None] = _nothing_to_do
