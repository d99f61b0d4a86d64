"""Checks that a rolling restart that waits for ever is named as stuck, and no longer than it is.

The plan knows when servers begin and end to answer without doing what the roll asks of them. The condition Progressing
of the component is read every few seconds, the other surfaces (`simulate.judge.surfaces`) once.
"""

from collections.abc import Callable

from apis.components import DM_CLUSTER, component_type
from apis.times import parse_time
from kube.objects import Json, condition_of
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS
from simulate.engine.engine import Engine
from simulate.engine.other_kinds import DM
from simulate.engine.plan import StuckRoll
from simulate.engine.worlds import NAME, NAMESPACE
from simulate.judge.surfaces import look, parts_of

LIMIT, WITHIN = 600.0, 60.0
"""Seconds without progress after which a roll counts as stuck, and until all surfaces show that or its end."""

STUCK = "RollingUpdateStuck"

_EVERY = 10.0

Report = Callable[[str], None]


class StuckRollJudge:
    """Judges one plan: `schedule` before the world runs."""

    def __init__(self, engine: Engine, roll: StuckRoll, report: Report) -> None:
        self._engine, self._roll, self._report = engine, roll, report
        is_of_dm = component_type(roll.component).of == DM_CLUSTER
        self._resource, self._name = (DM_CLUSTERS, DM) if is_of_dm else (TIDB_CLUSTERS, NAME)
        self._is_looked_at = False

    def schedule(self) -> None:
        """Check from the beginning of the wait until it must be over."""
        self._engine.later(self._roll.asked, self._check)

    def _check(self) -> None:
        now, roll, told = self._engine.elapsed, self._roll, self._told()
        is_named = told.get("reason") == STUCK
        if is_named and now < roll.asked + LIMIT:
            self._report(f"{roll.component} counts as stuck after {now - roll.asked:.0f} s: {told}")
        elif not is_named and roll.waits + LIMIT + WITHIN <= now < roll.ends:
            self._report(f"{roll.component} has waited for {now - roll.waits:.0f} s, and its condition says {told}")
        elif is_named and now >= roll.ends + WITHIN:
            self._report(f"{roll.component} counts as stuck {now - roll.ends:.0f} s after its wait: {told}")
        if is_named and not self._is_looked_at and now >= roll.waits + LIMIT + WITHIN:
            self._is_looked_at = True
            self._look(told)
        if now < roll.ends + WITHIN:
            self._engine.later(_EVERY, self._check)

    def _told(self) -> Json:
        """The component's condition Progressing."""
        found = self._engine.admin.find(self._resource, self._name, NAMESPACE)
        status = (found.decode().get("status") or {}) if found else {}
        part = dict(parts_of(self._resource, status)).get(self._roll.component, {})
        return condition_of(part.get("conditions") or (), "Progressing")

    def _look(self, told: Json) -> None:
        """Report the surfaces that do not show the stuck roll."""
        kind = "dc" if self._resource == DM_CLUSTERS else "tc"
        surfaces, message = look(self._engine, NAMESPACE, f"{kind}/{self._name}"), str(told.get("message"))
        since = parse_time(message.partition(" since ")[2].partition(" ")[0])
        lasts = (self._engine.clock.wall() - since).total_seconds() if since else 0.0
        warnings = [event for event in surfaces.events if (event["reason"], event["type"]) == (STUCK, "Warning")]
        shown = {
            "the condition, with what it waits for": self._roll.names in message,
            "the condition, with its begin": lasts >= LIMIT,
            "a Warning event": any(self._roll.names in warning["message"] for warning in warnings),
            "kubectl tidb status": self._roll.names in surfaces.page,
            "doctor": any(
                finding.reason == "RollStuck" and message in finding.message for finding in surfaces.findings
            ),
        }
        for what in (what for what, holds in shown.items() if not holds):
            self._report(f"a stuck roll of {self._roll.component} is not shown by {what}: {message}")
