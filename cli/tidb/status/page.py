"""The page of `status`, 80 columns wide. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from textwrap import shorten

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from cli.tidb.ages import ago
from cli.tidb.output import BAD, FAINT, GOOD, UNDER_WAY, Columns, Page
from cli.tidb.status.report import Backup, Component, Event, Member, Pod, Report, Schedule, Summary, Wait

_INDENT = 2
_LONGEST_EVENT = 150
"""The maximum number of characters of an event; the document has all of it."""


def page_of(report: Report, now: datetime) -> Page:
    """The page about a cluster, without empty sections."""
    yield from _head(report, now)
    for title, part in (
        ("", _components(report.components, now)),
        ("", _pods(report.pods)),
        ("Replaced by failover", _failures(report, now)),
        ("Volumes being changed", _volumes(report)),
        ("Without effect", map(_indented, report.without_effect)),
        ("Waits for a restart", map(_indented, report.pending)),
        ("Certificates", _certificates(report)),
        ("Backups", _backups(report, now)),
        ("Monitors", _monitors(report)),
        ("Events", _events(report.events, now)),
        ("Not shown", _unread(report)),
    ):
        if lines := list(part):
            yield ""
            if title:
                yield Text(title, "bold")
            yield from lines


def page_of_all(clusters: Iterable[Summary], now: datetime, *, with_namespace: bool) -> Page:
    """A line for each cluster: whether it serves, why not, and what it waits for."""
    table = Columns(*(["NAMESPACE"] if with_namespace else []), "CLUSTER", "READY", "COMPONENTS", "WAITS")
    for cluster in clusters:
        table.add(
            *([cluster.namespace] if with_namespace else []),
            f"{'dc/' if cluster.kind == 'DMCluster' else ''}{cluster.name}",
            _yes_or_no(cluster.ready),
            "\n".join(map(_count, cluster.components)),
            "\n".join(filter(None, (_why_not_ready(cluster, now), *(_short(wait, now) for wait in cluster.waits)))),
        )
    yield table


def _count(component: Component) -> str:
    return f"{component.name} {component.ready}/{component.desired}{' members ?' if component.last_seen else ''}"


def _why_not_ready(cluster: Summary, now: datetime) -> str:
    return "" if cluster.ready else " ".join(filter(None, (cluster.reason, ago(cluster.ready_since, now))))


def _short(wait: Wait, now: datetime) -> str:
    return " ".join(filter(None, (wait.of, wait.reason, ago(wait.since, now))))


def _yes_or_no(ready: bool) -> Text:
    return Text("yes", GOOD) if ready else Text("no", BAD)


def _head(report: Report, now: datetime) -> Iterator[RenderableType]:
    title = Text(f"{report.kind} {report.namespace}/{report.name}", "bold")
    since, age = ago(report.ready_since, now), ago(report.created, now)
    # the cluster may have been unready for longer than for this reason
    ready = "Ready" if report.ready else f"not Ready: {report.reason}" if report.reason else "not Ready"
    state = Text(f"{ready} for {since}" if since else ready, GOOD if report.ready else BAD)
    parts = (title, Text(report.version), state, Text(f"age {age}" if age else ""))
    yield Text("  ").join(part for part in parts if part.plain)
    yield Text(report.message, "" if report.ready else BAD)
    for wait in report.waits:
        since = ago(wait.since, now)
        what = f"{wait.of}: {wait.reason}{f' for {since}' if since else ''}"
        yield Text(f"{what}; it needs you" if wait.needs_user else what, BAD if wait.needs_user else UNDER_WAY)
        yield _indented(wait.message)


def _indented(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, _INDENT))


def _components(components: Iterable[Component], now: datetime) -> Page:
    table = Columns("COMPONENT", "READY", "UPDATED", "MEMBERS", "PHASE", "IMAGE")
    for component in components:
        pods = Text(
            f"{component.ready}/{component.desired}", GOOD if component.ready == component.desired else UNDER_WAY
        )
        members = _members(component, now)
        if component.slots:
            pods.append(f" without {', '.join(map(str, component.slots))}")
        updated = Text(
            f"{component.updated}/{component.desired}", GOOD if component.updated == component.desired else UNDER_WAY
        )
        table.add(component.name, pods, updated, members, component.phase, component.image)
    return [table] if table else []


def _members(component: Component, now: datetime) -> Text:
    if seen := component.last_seen:
        since = ago(seen.until, now)
        last = f"last seen {seen.healthy}/{seen.members}{f', {since} ago' if since else ''}"
        return Text(f"?/{component.desired} ({last})", UNDER_WAY)
    all_healthy = component.healthy == component.members and (component.members or not component.desired)
    return Text(f"{component.healthy}/{component.members}", GOOD if all_healthy else BAD)


def _pods(pods: Iterable[Pod]) -> Page:
    table = Columns("POD", "NODE", "STATE", "MEMBER")
    for pod in pods:
        again = f"{pod.restarts} restart{'s' * (pod.restarts > 1)}" if pod.restarts else ""
        state = Text("\n".join(filter(None, (pod.state, again))), GOOD if pod.ready else BAD)
        role = "\n".join(filter(None, (member_in_words(pod.member), *pod.commands)))
        table.add(pod.name, pod.node, state, role)
    return [table] if table else []


def member_in_words(member: Member | None) -> str:
    """What the data plane knows of a pod; empty if it does not know the pod."""
    if member is None:
        return ""
    if member.last_state:
        return f"{member.state} (last seen {member.last_state})"
    if member.leaders >= 0:
        return f"store {member.id} {member.state}, {member.leaders} leaders"
    return f"{member.state}, leads" if member.leads else member.state


def _failures(report: Report, now: datetime) -> Page:
    for failure in report.failures:
        what = " ".join(filter(None, (failure.component, failure.pod, failure.id and f"({failure.id})")))
        since = ago(failure.since, now)
        facts = (what, f"{since} ago" if since else "", "host down" if failure.host_down else "")
        yield _indented(", ".join(filter(None, facts)))


def _volumes(report: Report) -> Page:
    for volume in report.volumes:
        to = ", ".join(filter(None, (volume.capacity, volume.storage_class)))
        yield _indented(f"{volume.component}: {volume.done} of {volume.count} volumes {volume.name} are {to}")


def _certificates(report: Report) -> Page:
    if certificates := report.certificates:
        yield _indented(f"{certificates.reason}: {certificates.message}")


def _backups(report: Report, now: datetime) -> Page:
    backups = report.backups
    if backups.last_good:
        yield _indented(f"last good: {_backup(backups.last_good, now)}")
    elif backups.others or backups.schedules:
        yield _indented("no good one yet")
    yield from (_indented(_backup(backup, now)) for backup in backups.others)
    yield from (_indented(_schedule(schedule)) for schedule in backups.schedules)


def _backup(backup: Backup, now: datetime) -> str:
    done = ago(backup.completed, now)
    phase = f"{backup.phase or 'new'}{f': {backup.message}' if backup.message else ''}"
    facts = (f"{done} ago", backup.size, backup.commit_ts and f"as of {backup.commit_ts}") if done else (phase,)
    checkpoint = backup.checkpoint_ts and f"up to {backup.checkpoint_ts}"
    return f"{backup.name} ({backup.mode}) {', '.join(filter(None, (*facts, checkpoint)))}"


def _schedule(schedule: Schedule) -> str:
    return f"schedule {schedule.name} ({schedule.schedule}): {schedule.message}"


def _monitors(report: Report) -> Page:
    for monitor in report.monitors:
        yield _indented(f"{monitor.name} {'Ready' if monitor.ready else 'not Ready'}: {monitor.message}")


def _events(events: Iterable[Event], now: datetime) -> Page:
    table = Columns()
    for event in events:
        often = f"{event.count} times: " if event.count > 1 else ""
        style = BAD if event.type == "Warning" else FAINT
        table.add(ago(event.time, now), Text(event.reason, style), shorten(f"{often}{event.message}", _LONGEST_EVENT))
    return [Padding(table, (0, 0, 0, _INDENT))] if table else []


def _unread(report: Report) -> Page:
    yield from (_indented(f"{unread.what}: {unread.why}") for unread in report.unread)
