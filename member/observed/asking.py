"""Asking the servers of a component one after another, within a budget that they share (F53). Reads only."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from dataplane.calls import TIMEOUT
from ports.clock import Clock

_BUDGET = 10.0
"""Seconds for asking all servers in a reconcile, shared by those still to be asked."""

_SHORTEST = 0.1

_T = TypeVar("_T")


def ask_in_turn(
    clock: Clock, pods: Sequence[str], before: Mapping[str, bool], ask: Callable[[str, float], _T]
) -> dict[str, _T]:
    """What each pod answers, in their order; `ask` gets a pod and the seconds that its answer may take.

    Those that were well `before` are asked first and leave their share to the others.
    """
    deadline = clock.now() + _BUDGET
    found: dict[str, _T] = {}
    for pod in sorted(pods, key=lambda pod: not before.get(pod)):
        share = max(deadline - clock.now(), 0.0) / (len(pods) - len(found))
        found[pod] = ask(pod, min(max(share, _SHORTEST), TIMEOUT))
    return {pod: found[pod] for pod in pods}
