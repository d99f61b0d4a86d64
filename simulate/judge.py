"""Judges every step by the invariants, and remembers what was wrong, once each."""

from collections.abc import Hashable

import msgspec

from kube.objects import Json
from ports.transport import Response
from simulate.acts import Act
from simulate.calls import Call
from simulate.engine import Engine
from simulate.invariants import ON_STATE, ON_WRITE
from simulate.state import State


class Violation(msgspec.Struct, frozen=True):
    """`rule` is the id of an invariant or oracle; `at` is in seconds from the start of the plan."""

    rule: str
    at: float
    what: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.rule} at {self.at:.3f} s: {self.what}"


class Invariants:
    """The judge of a run. `always`: what depends on the state is judged at every step, changed or not."""

    def __init__(self, engine: Engine, *, always: bool = False) -> None:
        self._engine = engine
        self._always = always
        self._looked: Hashable = None
        self._charges: list[tuple[str, str]] = []
        """What is wrong with the write that is under way."""
        self._told: set[tuple[str, str]] = set()
        self.state = State(engine.world)
        self.violations: list[Violation] = []

    def before(self, call: Call) -> None:
        """See `Judge`."""
        round_ = self._engine.rounds.get(call.actor)
        in_sync = bool(call.key) and round_ is not None
        seen: Json | None = round_.cached.decode() if in_sync and round_ and round_.cached else None
        earlier = tuple(round_.calls[:-1]) if in_sync and round_ else ()
        act = Act(call, self.state, seen, self._engine.settings.failover, earlier)
        self._charges = [(rule, what) for rule, wrong in ON_WRITE.items() if (what := wrong(act))]

    def after(self, call: Call, answer: Response | None) -> None:  # noqa: ARG002
        """See `Judge`. What the server refused has done no harm: that is what preconditions are for."""
        charges, self._charges = self._charges, []
        if answer is None or answer.status < 400:
            for rule, what in charges:
                self.blame(rule, what)
        self.step()

    def step(self) -> None:
        """See `Judge`."""
        version = self.state.version()
        if version == self._looked and not self._always:
            return
        self._looked = version
        self.state.watch()
        for rule, wrong in ON_STATE.items():
            if what := wrong(self.state):
                self.blame(rule, what)

    def blame(self, rule: str, what: str) -> None:
        """See `Judge`."""
        if (rule, what) in self._told:
            return
        self._told.add((rule, what))
        found = Violation(rule, round(self._engine.elapsed, 3), what)
        self.violations.append(found)
        self._engine.note("JUDGE", str(found))
