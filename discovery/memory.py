"""Discovery's memory of one cluster. Losing it costs only time."""

from dataclasses import dataclass, field

_ASKED_RECENTLY = 60.0
"""Seconds for which a question proves that its pod has no data; scripts ask at least every ten seconds."""


@dataclass(slots=True)
class Memory:
    """The questions from and the answers to the pods of the cluster with this UID.

    `asked`: when the last verified question of each pod arrived. `answered`: when each pod last got a flag.
    `bootstrapping`: the pod that may begin the cluster and has not asked since. Only existing pods are kept.
    """

    uid: str
    asked: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    bootstrapping: str = ""

    def note_question(self, pod: str, arrived: float) -> None:
        """Record the question of a pod without data."""
        self._forget_before(arrived - _ASKED_RECENTLY)
        self.asked[pod] = max(arrived, self.asked.get(pod, arrived))
        if self.bootstrapping == pod:
            self.bootstrapping = ""

    def note_answer(self, pod: str, now: float) -> None:
        """Record that a pod got a flag."""
        self.answered[pod] = now

    def note_beginning(self, pod: str, now: float) -> None:
        """Record that a pod may begin the cluster."""
        self.note_answer(pod, now)
        self.bootstrapping = pod

    def _forget_before(self, then: float) -> None:
        """Drop records that prove nothing: questions older than a minute, and answers from before."""
        self.asked = {pod: at for pod, at in self.asked.items() if at >= then}
        self.answered = {pod: at for pod, at in self.answered.items() if at >= then}

    def empty(self, now: float) -> set[str]:
        """The pods that have proved that they have no data, and got no answer since."""
        recently = now - _ASKED_RECENTLY
        return {pod for pod, at in self.asked.items() if at >= recently and at > self.answered.get(pod, float("-inf"))}
