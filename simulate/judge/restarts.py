"""Needless restarts: pods recreated with the revision that they already had (reliability.md R24).

If other clients act, each pod is recreated as often as without them, plus once for each time they deleted it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kube.objects import Json
from simulate.engine.components import managed_components
from simulate.engine.plan import Plan
from simulate.engine.state import State, is_outdated, kept_ordinals


def are_judged(plan: Plan) -> bool:
    """True if a plan only changes the spec, without replacing volumes together with pods."""
    if plan.given or plan.faults:
        return False
    return not any(edit.does_more or "enablePVCReplace" in edit.spec for edit in plan.edits)


@dataclass(frozen=True, slots=True)
class _Life:
    """The last state of a pod. `due`: it was to get another revision, which may have been undone since."""

    uid: str
    revision: str
    due: bool


class Restarts:
    """Follows the pods of a cluster."""

    def __init__(self) -> None:
        self._known: dict[str, _Life] = {}

    def needless(self, state: State) -> Iterator[str]:
        """Pods that were recreated since the last check although their predecessors were to stay."""
        for component in managed_components():
            pods, live = state.pods(component), state.stateful_set(component)
            self._forget(state.name, component, {*pods, *kept_ordinals(live)})
            for pod in pods.values():
                name, now = pod["metadata"]["name"], _life(live, pod)
                before = self._known.get(name)
                if before and before.uid == now.uid:
                    now = replace(now, due=now.due or before.due)
                elif before and before.revision == now.revision and not before.due:
                    yield f"{name} was made anew although it had revision {now.revision}"
                self._known[name] = now

    def _forget(self, cluster: str, component: str, wanted: set[int]) -> None:
        """Forget pods that were scaled in or suspended, which may return."""
        prefix = f"{cluster}-{component}-"
        gone = [pod for pod in self._known if pod.startswith(prefix) and int(pod.removeprefix(prefix)) not in wanted]
        for pod in gone:
            del self._known[pod]


class Lives:
    """Counts the recreations of each pod, by name."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self.made_anew: Counter[str] = Counter()

    def look(self, state: State) -> None:
        """Count the pods with new UIDs."""
        for pods in state.all_pods.values():
            for pod in pods.values():
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                self.made_anew[name] += self._uids.get(name, uid) != uid
                self._uids[name] = uid


def _life(live: Json | None, pod: Json) -> _Life:
    meta = pod["metadata"]
    revision = meta.get("labels", {}).get("controller-revision-hash", "")
    return _Life(meta["uid"], revision, live is not None and is_outdated(live, pod))
