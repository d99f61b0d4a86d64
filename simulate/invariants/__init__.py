"""The invariants of lifecycle.md 17, each a function with its id that answers what is wrong, or None.

`ON_WRITE` are judged when the operator is about to write; what the API server then refuses has done no harm.
`ON_STATE` are judged whenever what they look at has changed. `LASTING` is what may be for a while, but not for long;
time counts when the faults of the plan are over. Where an invariant is about a whole run, an oracle stands for it:

| Invariant | Stood for by |
|---|---|
| I29 idempotence | O3: ten resyncs without a write (`simulate.run`) |
| I31 a killed process | O1: plans with a crash at each write end as without (`simulate.oracles`) |
| I32 A -> B -> A | O6: a plan that takes an edit back ends like one that never made it (`simulate.oracles`) |
| I33 a way out of each wait | O10: every plan is at rest within its budget (`simulate.run`) |
| I34 caches are not changed | the type: `kube.objects.Object` is bytes, each decode a fresh tree (tests/kube) |
| I35 one at a time | `controllers.key_locks` and the queue with real threads (tests/controllers); here one runs |
| I40 reads of idle reconciles | counted over the ten resyncs, together with O9 (`simulate.run`) |

I25 is in I21 and I22; I28's single event for each spec is tests/controllers'. Of the oracles, O4 is I1, I9-I12 and
`o4`; O5 is `o5`; O7 is what the engine sees a sync raise; O8 is I36 and `o8`; O11 is I41 and `o11`; O12 is `o12` and
`abandoned`. That each pod is restarted once for each new revision is judged in plans without faults (R24,
`simulate.judge.restarts`); that none is restarted without the user's request is I42 (`simulate.judge.asked_for`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from controllers.status_pacing import AT_FIRST, EVERY
from rehearsal.operator import RESYNC
from simulate.engine.state import State
from simulate.invariants import availability, control, data, failover, losses, order, reporting, upkeep
from simulate.invariants.operator_write import OperatorWrite

OnWrite = Callable[[OperatorWrite], str | None]
OnState = Callable[[State], str | None]


@dataclass(frozen=True, slots=True)
class Lasting:
    """A violation that is allowed for a number of seconds."""

    seconds: float
    found: Callable[[State], Iterator[str]]


ON_WRITE: Mapping[str, OnWrite] = {
    "I1": data.i1,
    "I2": data.i2,
    "I3": data.i3,
    "I3-pump": data.pump_i3,
    "I4": data.i4,
    "I5": data.i5,
    "I6": data.i6,
    "I7": data.i7,
    "I8": availability.i8,
    "I9": availability.i9,
    "I10": availability.i10,
    "I11": availability.i11,
    "I12": availability.i12,
    "I14": order.i14,
    "I15": order.i15,
    "I16": order.i16,
    "I17": order.i17,
    "I18": order.i18,
    "I19": order.i19,
    "I20": order.i20,
    "I21": failover.i21,
    "I22": failover.i22,
    "I23": failover.i23,
    "I24": availability.i24,
    "I26": control.i26,
    "I27": control.i27,
    "I28": control.i28,
    "I30": control.i30,
    "I36": control.i36,
    "I37": order.i37,
    "I38": upkeep.i38,
    "I39": upkeep.i39,
    "I41": availability.i41,
    "I43": availability.i43,
    "I44": availability.i44,
    "I45": data.i45,
    "I41-pump": availability.pump_i41,
    "I41-tso": availability.tso_i41,
    "I12-pdms": availability.pdms_i12,
    "7.1.1": order.by_priority,
    "F35": availability.f35,
    "hook": availability.needed_eviction,
    "O4": control.o4,
    "O5": control.o5,
    "O11": losses.o11,
    "O12": losses.o12,
}

ON_STATE: Mapping[str, OnState] = {
    "I7": data.another_pd,
    "I21": failover.too_many_replicas,
    "I36": control.unfounded_ready,
    "I39": upkeep.unannotated_ddl_pause,
    "I46": losses.i46,
    "O8": control.o8,
    "hook": availability.cut_short,
    "6.9": upkeep.lost_password,
}

TWO_RESYNCS = 2 * RESYNC + 1.0
"""Seconds within which the operator has reconciled again."""

SEEN_WITHIN = max(AT_FIRST, EVERY) + 1.0
"""Seconds within which a status reports pods that are no longer Ready, even if their readiness flaps."""

LASTING: Mapping[str, Lasting] = {
    "I13": Lasting(TWO_RESYNCS, availability.i13),
    "I36": Lasting(TWO_RESYNCS, control.outdated_ready),
    "I36-ready": Lasting(SEEN_WITHIN, reporting.unfounded),
    "I36-seen": Lasting(TWO_RESYNCS, reporting.untrue),
    "I39": Lasting(TWO_RESYNCS, upkeep.leftover_ddl_pause),
    "O12": Lasting(TWO_RESYNCS, losses.abandoned),
    "7.1.1": Lasting(TWO_RESYNCS, order.left_on_delete),
}
