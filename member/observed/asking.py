"""Concurrent requests to all servers of a component within a shared time budget (F53). Reads only."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from dataplane.calls import TIMEOUT
from member.context import ClusterContext

_BUDGET = 10.0
"""Seconds per reconcile for asking all servers. It matters if more servers are silent than are asked concurrently."""

_SHORTEST = 0.1

_T = TypeVar("_T")


def ask_all(
    ctx: ClusterContext, pods: Sequence[str], before: Mapping[str, bool], ask: Callable[[str, float], _T]
) -> dict[str, _T]:
    """The answer of each pod, in the order of `pods`; `ask` gets a pod and its timeout in seconds.

    Pods that were healthy `before` are asked first. Calls run concurrently, so `ask` must not read the API server: read
    what it needs before the call.
    """
    clock = ctx.deps.clock
    deadline = clock.now() + _BUDGET

    def answer(pod: str) -> _T:
        return ask(pod, min(max(deadline - clock.now(), _SHORTEST), TIMEOUT))

    ordered = sorted(pods, key=lambda pod: not before.get(pod))
    answers = ctx.deps.dataplane.side_by_side.run([partial(answer, pod) for pod in ordered])
    found = dict(zip(ordered, answers, strict=True))
    return {pod: found[pod] for pod in pods}
