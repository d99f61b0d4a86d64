"""What this process knows of rolling restarts beside what objects say: what for, and which pod it has told of."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Rolls:
    """Those of one cluster, by component. For one thread at a time.

    `causes` are sentences about what has changed; there is none for a roll that an earlier process has begun. `told` is
    the pod whose restart was last told as an event.
    """

    causes: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def begin(self, component: str, cause: str) -> None:
        """Note that another pod template goes in, and why."""
        self.causes[component] = cause
        self.told.pop(component, None)

    def end(self, component: str) -> None:
        """Note that all pods run the newest template."""
        self.causes.pop(component, None)
        self.told.pop(component, None)
