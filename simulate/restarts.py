"""Whether pods are restarted without need: made anew for the revision that they have already (reliability.md R24).

Where others change objects, each pod is made anew as often as without them, and once for each time that they took it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kube.objects import Json
from simulate.components import managed_components
from simulate.plan import Plan
from simulate.state import State, is_outdated, replicas


def are_judged(plan: Plan) -> bool:
    """Whether nothing happens in a plan but changes of the spec, and none that replaces volumes together with pods."""
    if plan.given or plan.faults:
        return False
    return not any(edit.does_more or "enablePVCReplace" in edit.spec for edit in plan.edits)


@dataclass(frozen=True, slots=True)
class _Life:
    """A pod as it was last. `due`: it was to get another revision, which may have been taken back since."""

    uid: str
    revision: str
    due: bool


class Restarts:
    """Follows the pods of a cluster."""

    def __init__(self) -> None:
        self._known: dict[str, _Life] = {}

    def needless(self, state: State) -> Iterator[str]:
        """Pods that have come since the last look, and are what those before them were to stay."""
        for component in managed_components():
            pods, live = state.pods(component), state.stateful_set(component)
            self._forget(state.name, component, {*pods, *range(replicas(live) if live else 0)})
            for pod in pods.values():
                name, now = pod["metadata"]["name"], _life(live, pod)
                before = self._known.get(name)
                if before and before.uid == now.uid:
                    now = replace(now, due=now.due or before.due)
                elif before and before.revision == now.revision and not before.due:
                    yield f"{name} was made anew although it had revision {now.revision}"
                self._known[name] = now

    def _forget(self, cluster: str, component: str, wanted: set[int]) -> None:
        """Who was scaled in, or suspended, may come back."""
        prefix = f"{cluster}-{component}-"
        gone = [pod for pod in self._known if pod.startswith(prefix) and int(pod.removeprefix(prefix)) not in wanted]
        for pod in gone:
            del self._known[pod]


class Lives:
    """Counts how often each pod was made anew, by name."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self.made_anew: Counter[str] = Counter()

    def look(self, state: State) -> None:
        """Count those that are others than before."""
        for component in managed_components():
            for pod in state.pods(component).values():
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                self.made_anew[name] += self._uids.get(name, uid) != uid
                self._uids[name] = uid


def _life(live: Json | None, pod: Json) -> _Life:
    meta = pod["metadata"]
    revision = meta.get("labels", {}).get("controller-revision-hash", "")
    return _Life(meta["uid"], revision, live is not None and is_outdated(live, pod))
