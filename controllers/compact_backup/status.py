"""The status of a CompactBackup as JSON: a state and a message (backup.md 6). Pure.

    "" → Scheduled → Prepare → Running → Complete, or RetryFailed → … → Failed

The Job writes to it as well, so unknown fields stay.
"""

from collections.abc import Sequence
from datetime import datetime

from apis.times import stamp
from controllers.job_owners.status import COMPLETE, FAILED, INVALID, RETRY_FAILED
from kube.objects import Json
from member.outcome import NotDone
from member.polling import time_left
from ports.foreign_text import printable
from ports.pace import Pace

ENDED = (COMPLETE, FAILED)

_PACE = Pace(20.0, 360.0, at_once=2)
"""The delays before retries; the first one has none."""


def with_state(
    status: Json,
    kind: str,
    now: datetime,  # noqa: ARG001  (as above)
    reason: str = "",
    message: str = "",
    *,
    is_true: bool = True,
) -> Json:
    """The status with a state, as `job_owner.WithCondition`; an invalid spec is Failed, as in v1.6."""
    if not is_true:
        return status
    fields = {"state": FAILED if kind == INVALID else kind, "message": printable(message or reason, lines=True)}
    return {key: value for key, value in (status | fields).items() if value != ""}


def with_indexes(status: Json, job: Json) -> Json:
    """The status with the shards of a Job that are complete and that have failed; none leaves the earlier ones."""
    of_job: Json = job.get("status") or {}
    return status | {name: of_job[name] for name in ("completedIndexes", "failedIndexes") if of_job.get(name)}


def with_wait(status: Json, wait: NotDone | None, _now: datetime) -> Json:
    """The status with the message of the wait, which the next state replaces."""
    if wait is None or status.get("state") in ENDED:
        return status
    return status | {"message": printable(wait.message, lines=True)}


def with_retry(status: Json, now: datetime, why: str) -> Json:
    """The status with a record of one more failure."""
    records = _records(status)
    record = {"retryNum": len(records), "detectFailedAt": stamp(now), "retryReason": why}
    return with_state(status, RETRY_FAILED, now, message=why) | {"backoffRetryStatus": [*records, record]}


def is_given_up(status: Json, most: int) -> bool:
    """True if it has failed more than `most` times after the first try."""
    records = _records(status)
    return bool(records) and int(records[-1].get("retryNum") or 0) > most


def due_in(status: Json, now: datetime) -> float:
    """The seconds until the next try, 0 for now. The delay doubles with each failure after the first."""
    records = _records(status)
    failed = str(records[-1].get("detectFailedAt") or "") if records else ""
    return time_left(failed, _PACE.after(len(records)), now)


def last_failure(status: Json) -> str:
    """The message of the last failure; empty if there was none."""
    records = _records(status)
    return str(records[-1].get("retryReason") or "") if records else ""


def _records(status: Json) -> Sequence[Json]:
    found: Sequence[Json] = status.get("backoffRetryStatus") or ()
    return found
