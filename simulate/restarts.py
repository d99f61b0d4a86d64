"""Whether pods are restarted without need: made anew for the revision that they have already (reliability.md R24)."""

from collections.abc import Iterator

from simulate.plan import Plan
from simulate.state import PARTS, State, replicas
from simulate.worlds import NAME


def are_judged(plan: Plan) -> bool:
    """Whether nothing happens in a plan but changes of the spec, and none that replaces volumes together with pods."""
    edits = plan.edits
    only_specs = not any(edit.annotations or edit.target or edit.delete for edit in edits)
    return only_specs and not plan.given and not plan.faults and not any("enablePVCReplace" in e.spec for e in edits)


class Restarts:
    """Follows the pods of a cluster."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}
        """UID and revision of each pod as it was last."""

    def needless(self, state: State) -> Iterator[str]:
        """Pods that have come since the last look, and are what those before them were."""
        for part in PARTS:
            pods, live = state.pods(part), state.stateful_set(part)
            self._forget(part, {*pods, *range(replicas(live) if live else 0)})
            for pod in pods.values():
                meta = pod["metadata"]
                now = (meta["uid"], meta.get("labels", {}).get("controller-revision-hash", ""))
                before = self._known.get(meta["name"], now)
                self._known[meta["name"]] = now
                if before[0] != now[0] and before[1] == now[1]:
                    yield f"{meta['name']} was made anew although it had revision {now[1]}"

    def _forget(self, part: str, wanted: set[int]) -> None:
        """Who was scaled in, or suspended, may come back."""
        prefix = f"{NAME}-{part}-"
        gone = [pod for pod in self._known if pod.startswith(prefix) and int(pod.removeprefix(prefix)) not in wanted]
        for pod in gone:
            del self._known[pod]
