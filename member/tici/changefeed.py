"""The changefeed that feeds TiCI. The operator asks TiCDC's API for it; v1.7 leaves it to a start script (TICI-26, 28).

A change of the sink, or of its keys, needs three steps of TiCDC's API: pause, update, resume. The status records the
begin of a change before the first step, so that another process completes it. A changefeed that a user has paused stays
paused, and the operator removes none: its checkpoint would be lost.
"""

from datetime import timedelta
from functools import partial

from apis import tso
from apis.accessor import component
from apis.component_specs import TiCIChangefeed
from apis.component_statuses import TiCIChangefeedStatus
from apis.times import parse_time, stamp
from dataplane.errors import BadTlsMaterial, DataPlaneError
from dataplane.ticdc import Changefeed, TiCDCClient
from kube.objects import secret_data
from member.actions import CreateChangefeed, PauseChangefeed, ResumeChangefeed, SetSink
from member.context import Held, ReconcileContext
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll
from member.ticdc.status import client
from member.tici.desired import (
    ACCESS_KEY,
    META,
    SECRET_KEY,
    Keys,
    Sink,
    leads_to_the_same,
    needs_secret,
    s3_of,
    sink,
    without_keys,
)
from ports.foreign_text import shortened

_NORMAL, _STOPPED, _FAILED = "normal", "stopped", "failed"
_RECORDED_EVERY = timedelta(hours=6)
"""The steps in which the status follows the checkpoint: each is a write. TiKV keeps what TiCDC needs for a day."""
_NEXT_STEP = 1.0


def observe(ctx: ReconcileContext) -> None:
    """Update `status.tici` with TiCDC's report. An unknown changefeed, or no answer, leaves the last report."""
    feed = _wanted(ctx)
    if feed is None:
        ctx.status.tici = None
        return
    status = _status(ctx)
    status.changefeed_synced = False
    try:
        capture = _capture(ctx)
        found = capture.changefeed(feed.changefeed_id) if capture else None
    except (BadTlsMaterial, DataPlaneError):
        return
    if found is not None:
        _report(status, found)


def _report(status: TiCIChangefeedStatus, found: Changefeed) -> None:
    is_news = status.changefeed_state != found.state
    status.changefeed_state, status.changefeed_synced = found.state, found.state == _NORMAL
    message = f"{found.error.code}: {found.error.message}" if found.error and found.error.message else ""
    status.changefeed_last_error = shortened(without_keys(message)) if message else ""
    if not found.checkpoint_ts:
        return
    checkpoint, known = tso.time_of(found.checkpoint_ts), parse_time(status.changefeed_checkpoint or "")
    if is_news or known is None or abs(checkpoint - known) >= _RECORDED_EVERY:
        status.changefeed_checkpoint = stamp(checkpoint)


def _status(ctx: ReconcileContext) -> TiCIChangefeedStatus:
    ctx.status.tici = ctx.status.tici or TiCIChangefeedStatus()
    return ctx.status.tici


def _wanted(ctx: ReconcileContext) -> TiCIChangefeed | None:
    """The changefeed of the spec; None if it is switched off."""
    tici = ctx.tc.spec.tici
    return tici.changefeed if tici and tici.feeds else None


def _capture(ctx: ReconcileContext) -> TiCDCClient | None:
    """A client of a capture that is up, of the owner if possible. Raises BadTlsMaterial."""
    captures = [each for each in ctx.status.ticdc.captures.values() if each.ready]
    first = min(captures, key=lambda each: (not each.is_owner, each.pod_name), default=None)
    return client(ctx, first.pod_name) if first else None


async def maintain(ctx: ReconcileContext) -> Outcome | None:
    """Create the changefeed, or take the next step of its change; None if it is switched off. Raises LeaseExpired."""
    feed = _wanted(ctx)
    if feed is None or ctx.held is not Held.NO or any(component(ctx.tc, name).suspended for name in (META, "ticdc")):
        return None
    try:
        capture = _capture(ctx)
        if capture is None:
            return Waiting("WaitingForTiCDC", "the changefeed of TiCI needs a capture that is up", next_poll(ctx, META))
        keys = bucket_keys(ctx, needs_secret(ctx.tc))
        if isinstance(keys, Waiting):
            return keys
        return await _step(ctx, capture, feed.changefeed_id, sink(ctx.tc, keys))
    except DataPlaneError as error:
        what = f"cannot look after the changefeed {feed.changefeed_id}: {without_keys(str(error))}"
        return Waiting("ChangefeedUnknown", what, next_poll(ctx, META))


def bucket_keys(ctx: ReconcileContext, name: str) -> Keys | Waiting:
    """The keys of the bucket, from the Secret of that name; empty: from the spec.

    The Secret is read again after a change, and at times. Raises ApiError, TransportError.
    """
    s3 = s3_of(ctx.tc)
    if not name:
        return Keys(s3.access_key, s3.secret_key)
    cause = (name, ctx.deps.secrets.changes(ctx.reader))
    keys = ctx.memory.bucket_keys.of(cause, ctx.deps.clock, partial(_read, ctx, name))
    if keys is None:
        what = (
            f"Secret {ctx.namespace}/{name} must have {ACCESS_KEY} and {SECRET_KEY}; spec.tici.s3.secretName names it"
        )
        return Waiting("WaitingForBucketKeys", what)
    return Keys(*keys)


def _read(ctx: ReconcileContext, name: str) -> tuple[str, str, str] | None:
    secret = ctx.secret(name)
    data = secret_data(secret) if secret else {}
    access, key = (data.get(each, b"").decode("utf-8", "replace").strip() for each in (ACCESS_KEY, SECRET_KEY))
    return (access, key, secret.metadata.resource_version) if secret and access and key else None


async def _step(ctx: ReconcileContext, capture: TiCDCClient, name: str, wanted: Sink) -> Outcome:
    """Raises DataPlaneError, LeaseExpired."""
    status, found = _status(ctx), capture.changefeed(name)
    if found is None:
        # a removed one continues at its last checkpoint, so that the indexes lack nothing
        known = parse_time(status.changefeed_checkpoint or "")
        await CreateChangefeed(capture, name, wanted.uri, tso.of_time(known) if known else 0)
        _record(status, wanted)
        return Waiting("CreatingChangefeed", f"TiCDC is creating the changefeed {name}", _NEXT_STEP)
    _report(status, found)
    if not status.changefeed_sink and leads_to_the_same(found.sink_uri, wanted.uri):
        # of v1.7, or of another process whose status was lost
        _record(status, wanted)
    if status.changefeed_changing or not _is_recorded(status, wanted):
        return await _change(ctx, capture, name, found.state, wanted)
    return _judged(ctx, name, found.state)


def _record(status: TiCIChangefeedStatus, wanted: Sink) -> None:
    status.changefeed_sink, status.changefeed_keys = wanted.shown, wanted.version


def _is_recorded(status: TiCIChangefeedStatus, wanted: Sink) -> bool:
    return (status.changefeed_sink, status.changefeed_keys) == (wanted.shown, wanted.version)


async def _change(ctx: ReconcileContext, capture: TiCDCClient, name: str, state: str, wanted: Sink) -> Waiting:
    """Take the next step of a change: record it, pause, update, resume. Raises DataPlaneError, LeaseExpired."""
    status, rests = _status(ctx), state in (_STOPPED, _FAILED)
    if not status.changefeed_changing and state == _STOPPED:
        # a user has paused it, and the change would resume it
        return _stopped(ctx, name, "; its new sink or keys wait")
    if not status.changefeed_changing:
        status.changefeed_changing = True
        return _changing(f"the changefeed {name} gets its new sink or keys")
    if not _is_recorded(status, wanted) and not rests:
        await PauseChangefeed(capture, name)
        return _changing(f"waiting for the changefeed {name} to be paused, for its new sink or keys")
    if not _is_recorded(status, wanted):
        await SetSink(capture, name, wanted.uri)
        _record(status, wanted)
        return _changing(f"the changefeed {name} has its new sink; it is resumed next")
    if rests:
        await ResumeChangefeed(capture, name)
    status.changefeed_changing = False
    return _changing(f"waiting for the changefeed {name} to continue")


def _changing(what: str) -> Waiting:
    return Waiting("ChangingChangefeed", what, _NEXT_STEP)


def _judged(ctx: ReconcileContext, name: str, state: str) -> Outcome:
    if state == _NORMAL:
        return Done()
    if state == _STOPPED:
        return _stopped(ctx, name)
    error = _status(ctx).changefeed_last_error or "TiCDC reports no error"
    what = f"the changefeed {name} is {shortened(state)}: {error}"
    return Waiting("ChangefeedNotNormal", what, next_poll(ctx, META), way_out=_RESUME.format(name))


def _stopped(ctx: ReconcileContext, name: str, addition: str = "") -> Waiting:
    what = f"a user of TiCDC has paused the changefeed {name}{addition}"
    return Waiting("ChangefeedNotNormal", what, next_poll(ctx, META), way_out=_RESUME.format(name))


_RESUME = "cdc cli changefeed resume --changefeed-id={}, in a pod of TiCDC, resumes it"
