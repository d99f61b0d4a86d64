"""When a snapshot's Job that has failed is made again (backup.md 3.7). Pure.

A failure is recorded first, and every step after that follows from the record, so that a process which ends anywhere in
between is followed by one that goes on:

    failed → recorded → (expectedRetryAt) → RetryFailed → Job deleted → realRetryAt, Restart → Job made → Scheduled
                     └→ too often, or too long ago: Failed
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from apis import duration
from apis.backups import BackoffRetryPolicy
from apis.times import parse_time, stamp
from controllers.job_owners.status import FAILED, RESTART, RETRY_FAILED, with_condition
from kube.objects import Json
from member.backups.pods import condition_of_job
from member.outcome import Waiting

ALREADY_FAILED = "AlreadyFailed"
RETRY_FAILED_BACKUP = "RetryFailedBackup"


def is_retrying(status: Json) -> bool:
    """Whether the next Job is on its way: the last one is going, or has gone."""
    return status.get("phase") == RETRY_FAILED and bool(_records(status))


def is_recorded(status: Json) -> bool:
    """Whether the failure of the present Job stands in the status."""
    records = _records(status)
    return bool(records) and (status.get("phase") == RETRY_FAILED or not records[-1].get("realRetryAt"))


def with_record(status: Json, job: Json, policy: BackoffRetryPolicy, now: datetime) -> Json:
    """The status with the failure of a Job."""
    records = _records(status)
    number = len(records) + 1
    # a policy asks for no more than a century: the exponent is one of the user's
    pause = min(duration.seconds(policy.min_retry_duration) * 2.0 ** min(number - 1, 60), 3e9)
    record = {
        "retryNum": number,
        "detectFailedAt": stamp(now),
        "expectedRetryAt": stamp(now + timedelta(seconds=pause)),
        "retryReason": f"Job {job['metadata']['name']} has failed",
        "originalReason": str(condition_of_job(job, "Failed").get("reason") or ""),
    }
    return status | {"backoffRetryStatus": [*records, record]}


def decided(status: Json, policy: BackoffRetryPolicy, now: datetime) -> Json | Waiting:
    """What becomes of a failure that is recorded: the status that says so, or the wait for the next try."""
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
    # what was detected in the future was so before the clock was put back
    if (parse_time(str(last.get("detectFailedAt") or "")) or now) <= now < expected:
        message = f"{last.get('retryReason', '')}; the next one is made at {stamp(expected)}"
        return Waiting("RetryPending", message, (expected - now).total_seconds())
    return with_condition(status, RETRY_FAILED, now, RETRY_FAILED_BACKUP, why)


def has_gone(status: Json) -> bool:
    """Whether the failed Job has been deleted for the next try."""
    records = _records(status)
    return bool(records) and bool(records[-1].get("realRetryAt"))


def with_restart(status: Json, now: datetime) -> Json:
    """The status once the failed Job is gone: the next one starts anew, and its pod must know (7.4)."""
    *before, last = _records(status)
    noted = status | {"backoffRetryStatus": [*before, last | {"realRetryAt": stamp(now)}]}
    return with_condition(noted, RESTART, now)


def _records(status: Json) -> Sequence[Json]:
    found: Sequence[Json] = status.get("backoffRetryStatus") or ()
    return found
