"""What discovery remembers of one cluster; losing it costs time only."""

from dataclasses import dataclass, field

_ASKED_RECENTLY = 60.0
"""Seconds for which a question proves that its pod holds no data; scripts ask at least every ten seconds."""


@dataclass(slots=True)
class Memory:
    """Who asked, and who was told what.

    `asked`: when each pod's last question arrived; `answered`: when each pod was last told how to start;
    `bootstrapping`: the pod that was told to begin the cluster and has not asked since.
    """

    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    bootstrapping: str = ""

    def note_question(self, pod: str, arrived: float) -> None:
        """A pod without data has asked."""
        self.asked[pod] = max(arrived, self.asked.get(pod, arrived))
        if self.bootstrapping == pod:
            self.bootstrapping = ""

    def note_beginning(self, pod: str, now: float) -> None:
        """A pod was told to begin the cluster."""
        self.answered[pod] = now
        self.bootstrapping = pod

    def empty(self, now: float) -> set[str]:
        """The pods that have shown that they hold no data, and have not been told since how to get some."""
        recently = now - _ASKED_RECENTLY
        return {pod for pod, at in self.asked.items() if at >= recently and at > self.answered.get(pod, float("-inf"))}
