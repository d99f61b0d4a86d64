"""Asking all servers of a component side by side, within a budget that they share (F53). Reads only."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from dataplane.calls import TIMEOUT
from member.context import ClusterContext

_BUDGET = 10.0
"""Seconds for asking all servers in a reconcile, of use where more are silent than can be asked at a time."""

_SHORTEST = 0.1

_T = TypeVar("_T")


def ask_all(
    ctx: ClusterContext, pods: Sequence[str], before: Mapping[str, bool], ask: Callable[[str, float], _T]
) -> dict[str, _T]:
    """What each pod answers, in their order; `ask` gets a pod and the seconds that its answer may take.

    Those that were well `before` are asked first. Several are asked at a time, so whatever `ask` reads of the API
    server has to be read by now.
    """
    clock = ctx.deps.clock
    deadline = clock.now() + _BUDGET

    def answer(pod: str) -> _T:
        return ask(pod, min(max(deadline - clock.now(), _SHORTEST), TIMEOUT))

    ordered = sorted(pods, key=lambda pod: not before.get(pod))
    answers = ctx.deps.dataplane.side_by_side.run([partial(answer, pod) for pod in ordered])
    found = dict(zip(ordered, answers, strict=True))
    return {pod: found[pod] for pod in pods}
