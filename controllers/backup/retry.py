"""Retries of a failed snapshot Job (backup.md 3.7). Pure.

The operator records a failure first. Every later step follows from the record, so that after a crash the next process
continues:

    failed → recorded → (expectedRetryAt) → RetryFailed → Job deleted → realRetryAt, Restart → Job made → Scheduled
                     └→ too often, or too long ago: Failed
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from apis.backups import BackoffRetryPolicy
from apis.times import parse_time, stamp
from controllers.job_owners.status import FAILED, RESTART, RETRY_FAILED, with_condition
from kube.objects import Json
from member.backups.pods import condition_of_job
from member.outcome import Waiting
from ports import duration
from ports.pace import Pace

ALREADY_FAILED = "AlreadyFailed"
RETRY_FAILED_BACKUP = "RetryFailedBackup"


def is_retrying(status: Json) -> bool:
    """True if a retry has begun: the last Job is being deleted, or is gone."""
    return status.get("phase") == RETRY_FAILED and bool(_records(status))


def is_recorded(status: Json) -> bool:
    """True if the status has a record of the failure of the present Job."""
    records = _records(status)
    return bool(records) and (status.get("phase") == RETRY_FAILED or not records[-1].get("realRetryAt"))


def with_record(status: Json, job: Json, policy: BackoffRetryPolicy, now: datetime) -> Json:
    """The status with a record of the failure of a Job."""
    records = _records(status)
    number = len(records) + 1
    # at most a century: the user's policy may allow any number of doublings
    pause = Pace(duration.seconds(policy.min_retry_duration), 3e9).after(number)
    record = {
        "retryNum": number,
        "detectFailedAt": stamp(now),
        "expectedRetryAt": stamp(now + timedelta(seconds=pause)),
        "retryReason": f"Job {job['metadata']['name']} has failed",
        "originalReason": str(condition_of_job(job, "Failed").get("reason") or ""),
    }
    return status | {"backoffRetryStatus": [*records, record]}


def decided(status: Json, policy: BackoffRetryPolicy, now: datetime) -> Json | Waiting:
    """The decision about a recorded failure: the status with RetryFailed or Failed, or the wait for the next try."""
    records = _records(status)
    last = records[-1]
    why = f"failed reason {last.get('retryReason', '')}, original reason {last.get('originalReason', '')}"
    first = parse_time(str(records[0].get("detectFailedAt") or "")) or now
    limit = duration.seconds(policy.retry_timeout)
    if (now - first).total_seconds() > limit:
        return with_condition(
            status, FAILED, now, ALREADY_FAILED, f"retry timeout, max is {policy.retry_timeout}, {why}"
        )
    if int(last.get("retryNum") or len(records)) > policy.max_retry_times:
        message = f"exceed retry times, max is {policy.max_retry_times}, {why}"
        return with_condition(status, FAILED, now, ALREADY_FAILED, message)
    expected = parse_time(str(last.get("expectedRetryAt") or "")) or now
    # a detection in the future means that the clock was set back: do not wait then
    if (parse_time(str(last.get("detectFailedAt") or "")) or now) <= now < expected:
        message = f"{last.get('retryReason', '')}; the next one is made at {stamp(expected)}"
        return Waiting("RetryPending", message, (expected - now).total_seconds())
    return with_condition(status, RETRY_FAILED, now, RETRY_FAILED_BACKUP, why)


def has_gone(status: Json) -> bool:
    """True if the failed Job has been deleted for the next try."""
    records = _records(status)
    return bool(records) and bool(records[-1].get("realRetryAt"))


def with_restart(status: Json, now: datetime) -> Json:
    """The status after the failed Job is gone. Its condition Restart makes the next pod start from scratch (7.4)."""
    *before, last = _records(status)
    noted = status | {"backoffRetryStatus": [*before, last | {"realRetryAt": stamp(now)}]}
    return with_condition(noted, RESTART, now)


def _records(status: Json) -> Sequence[Json]:
    found: Sequence[Json] = status.get("backoffRetryStatus") or ()
    return found
