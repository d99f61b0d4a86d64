"""How a sync reports to its controller what became of a key (lifecycle.md 1.3).

Exception
├── RequeueError    an expected wait, with its reason: try again, and make no noise
└── IgnoreError     ended on purpose: do not try again

Anything else is a failure, which is retried and logged with its stack. Several stages may fail in one sync and be
raised as one ExceptionGroup, so both are looked for inside groups and behind the exceptions that wrap them.
"""

from collections.abc import Iterator


class RequeueError(Exception):
    """Raised when a sync waits for something outside it.

    `reason` and `message` are those of a condition: the frame of the controller records them where it can. `after` is
    in seconds and starts the back-off anew; without it, or with none that is positive and finite, the key is retried
    with growing delays. `untold`: no condition, event or log line has said why yet.
    """

    def __init__(self, reason: str, message: str, after: float | None = None, *, untold: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.after = after
        self.untold = untold


class IgnoreError(Exception):
    """Raised to end a sync quietly: the state changed on purpose and an event will bring the key back."""


def find_requeue(error: BaseException) -> RequeueError | None:
    """The RequeueError anywhere inside `error`; of several the one that wants to come back first."""
    requeues = [inner for inner in _everything_inside(error) if isinstance(inner, RequeueError)]
    return min(requeues, key=lambda requeue: float("inf") if requeue.after is None else requeue.after, default=None)


def is_ignorable(error: BaseException) -> bool:
    """Whether `error` is an IgnoreError, was raised from one, or is a group of nothing else.

    An error that merely came up while one was handled is not: it would be lost.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(is_ignorable(member) for member in error.exceptions)
    return any(isinstance(link, IgnoreError) for link in _causes(error))


def sentence(error: BaseException) -> str:
    """The text of `error`; of a group, the texts of its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(sentence(member) for member in error.exceptions)
    return str(error) or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _everything_inside(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        pending.append(link.__cause__)
        if not link.__suppress_context__:
            pending.append(link.__context__)
        if isinstance(link, BaseExceptionGroup):
            pending.extend(link.exceptions)
