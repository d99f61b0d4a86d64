"""What discovery remembers of one cluster; losing it costs time only."""

from dataclasses import dataclass, field

_ASKED_RECENTLY = 60.0
"""Seconds for which a question proves that its pod holds no data; scripts ask at least every ten seconds."""


@dataclass(slots=True)
class Memory:
    """Which pods of the cluster with this uid asked, and which answer they got.

    `asked`: when each pod's last question arrived that was verified; `answered`: when each pod last got a flag to start
    with; `bootstrapping`: the pod that may begin the cluster and has not asked since. Only pods that exist are kept.
    """

    uid: str
    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    bootstrapping: str = ""

    def note_question(self, pod: str, arrived: float) -> None:
        """A pod without data has asked."""
        self._forget_before(arrived - _ASKED_RECENTLY)
        self.asked[pod] = max(arrived, self.asked.get(pod, arrived))
        if self.bootstrapping == pod:
            self.bootstrapping = ""

    def note_answer(self, pod: str, now: float) -> None:
        """A pod has got a flag to start with."""
        self.answered[pod] = now

    def note_beginning(self, pod: str, now: float) -> None:
        """A pod may begin the cluster."""
        self.note_answer(pod, now)
        self.bootstrapping = pod

    def _forget_before(self, then: float) -> None:
        """Drop what proves nothing any more: a question that is older than a minute, and answers before that."""
        self.asked = {pod: at for pod, at in self.asked.items() if at >= then}
        self.answered = {pod: at for pod, at in self.answered.items() if at >= then}

    def empty(self, now: float) -> set[str]:
        """The pods that have shown that they hold no data, and have not been told since how to get some."""
        recently = now - _ASKED_RECENTLY
        return {pod for pod, at in self.asked.items() if at >= recently and at > self.answered.get(pod, float("-inf"))}
