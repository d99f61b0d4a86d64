"""The exceptions with which a sync reports its end to the controller (lifecycle.md 1.3).

Exception
├── RequeueError    an expected wait, with its reason: retry, without an error in the log
└── IgnoreError     ended on purpose: do not retry

Any other exception is a failure, which is retried and logged with its stack. A sync may raise the failures of several
stages as one ExceptionGroup, so both exceptions are also found in groups and among the causes of other exceptions.
"""

from collections.abc import Iterator


class RequeueError(Exception):
    """Raised when a sync waits for something outside it.

    `reason` and `message` have the format of a condition. `after` is the delay in seconds and resets the back-off; if
    it is None, not positive or infinite, the delays between retries grow. `untold` is True if no condition, event or
    log line has reported the reason.
    """

    def __init__(self, reason: str, message: str, after: float | None = None, *, untold: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.after = after
        self.untold = untold


class IgnoreError(Exception):
    """Raised to end a sync quietly, because a change is under way whose event enqueues the key."""


def find_requeue(error: BaseException) -> RequeueError | None:
    """The RequeueError inside `error`, its causes and its groups; of several, the one with the shortest delay."""
    requeues = [inner for inner in _everything_inside(error) if isinstance(inner, RequeueError)]
    return min(requeues, key=lambda requeue: float("inf") if requeue.after is None else requeue.after, default=None)


def is_ignorable(error: BaseException) -> bool:
    """True if `error` is an IgnoreError, was raised from one, or is a group of only such errors.

    False for an error raised while an IgnoreError was being handled (its `__context__`): ignoring it would hide it.
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
