"""Checks that all surfaces show an outage within a minute, consistently, and no longer than it lasts.

The world knows when service ends and resumes; the surfaces (`simulate.judge.surfaces`) are read every few seconds
meanwhile and afterwards.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

from apis.components import DM_CLUSTER, component_type
from apis.times import parse_time
from cli.doctor.finding import Severity
from kube.objects import Json, condition_of
from kube.resources import PODS, STATEFUL_SETS
from member.availability import REASONS
from sandbox.conditions import holds
from simulate.engine.engine import Engine
from simulate.engine.other_kinds import DM
from simulate.engine.plan import Outage
from simulate.engine.worlds import NAME, NAMESPACE
from simulate.judge.alerts import EVERY, Expected, Recorded, Scrapes
from simulate.judge.surfaces import Surfaces, look

WITHIN = 60.0
"""Seconds from the beginning of an outage until all surfaces show it, and from its end until none does."""

_EVERY = 5.0
_RESTORED_WITHIN = 240.0
"""Seconds from the end of a fault until all pods must be Ready; the recovery itself is not checked."""

_GREEN = "\x1b[32m"
_NOT_RUNNING = frozenset({"Pending", "Failed", "Missing", "CrashLoopBackOff", "Error"})

Report = Callable[[str], None]


@dataclass(slots=True)
class _Timed:
    """The reason of Ready at the last check, the time of that check, and of the last one with another reason."""

    reason: str = ""
    at: float = 0.0
    seen_otherwise: float = 0.0


class OutageJudge:
    """Follows the outage of one plan."""

    def __init__(self, engine: Engine, plan: str, outage: Outage, report: Report) -> None:
        self._engine, self._name_of_plan, self._outage, self._report = engine, plan, outage, report
        self._is_of_dm = component_type(outage.component).of == DM_CLUSTER
        self._name = DM if self._is_of_dm else NAME
        # a lost machine may hit pods of other clusters, whose alerts are none of this plan's
        alert = "DMClusterUnavailable" if self._is_of_dm else "TidbClusterUnavailable"
        self._alert = partial(Expected, alert=alert, namespace=NAMESPACE, name=self._name)
        self._timed = _Timed()
        self._begun_at = self._over_at = 0.0
        self._scrapes = Scrapes({"one": engine.operators["operator"].registry}, _is_of_cluster)
        self._is_over = False
        self._out_of_service: list[tuple[float, bool]] = []
        """The time of each look, and whether the conditions then say that a component is out of service."""

    def follow(self) -> Recorded:
        """Let the world run until a minute after the outage, and report what the surfaces fail to show.

        Returns the scrapes, and what the alerts must do on them.
        """
        begun = self._engine.elapsed
        self._scrape()
        self._follow()
        self._is_over = True
        over = int((self._engine.elapsed - begun) // EVERY)
        expected = [*self._expected(begun), *([self._alert(over, fires=False)] if self._over_at else ())]
        return Recorded(self._name_of_plan, dict(self._scrapes.series), tuple(expected))

    def _scrape(self) -> None:
        if not self._is_over:
            self._scrapes.scrape()
            self._engine.later(EVERY, self._scrape)

    def _expected(self, begun: float) -> Iterator[Expected]:
        """What fires one scrape later than the operator may report it; where that is open, what the conditions say."""
        scrape = int((self._outage.begins + WITHIN - begun) // EVERY) + 1
        if self._outage.reasons:
            yield self._alert(scrape, fires=True, component=self._outage.component, reasons=self._outage.reasons)
            return
        at = begun + scrape * EVERY
        seen = {is_out for elapsed, is_out in self._out_of_service if at - 2 * EVERY <= elapsed <= at + _EVERY}
        if len(seen) == 1:
            yield self._alert(scrape, fires=seen.pop())

    def _follow(self) -> None:
        self._engine.run(self._outage.begins - self._engine.elapsed)
        self._begun_at = self._engine.clock.wall().timestamp()
        while self._engine.elapsed < self._outage.ends:
            self._engine.run(_EVERY)
            seen = self._look()
            if self._engine.elapsed >= self._outage.begins + WITHIN and self._engine.elapsed < self._outage.ends:
                self._tell("after a minute", unreported(seen, self._outage, self._begun_at, self._hit()))
        self._over_at = self._engine.clock.wall().timestamp()
        if not self._engine.run_until(self._is_whole, _RESTORED_WITHIN):
            self._report("the world is not whole again: no plan for this family")
            return
        since = self._engine.elapsed
        while self._engine.elapsed < since + 2 * WITHIN:
            self._engine.run(_EVERY)
            seen = self._look()
            if self._engine.elapsed >= since + WITHIN:
                self._tell("a minute after its end", uncleared(seen))

    def _look(self) -> Surfaces:
        seen = look(self._engine, NAMESPACE, f"{'dc' if self._is_of_dm else 'tc'}/{self._name}")
        self._tell("at all times", contradictions(seen))
        self._tell("at all times", self._wrong_times(seen))
        self._out_of_service.append((self._engine.elapsed, bool(seen.reasons & REASONS)))
        return seen

    def _wrong_times(self, seen: Surfaces) -> Iterator[str]:
        """A reason that claims to have held while another was seen."""
        reason, since = str(seen.ready.get("reason")), parse_time(str(seen.ready.get("lastTransitionTime") or ""))
        if reason == self._timed.reason and since and since.timestamp() < self._timed.seen_otherwise:
            yield f"{reason} is said to hold since {since}, when Ready had another reason"
        # a condition has whole seconds
        before = self._timed.seen_otherwise if reason == self._timed.reason else float(int(self._timed.at))
        self._timed = _Timed(reason, self._engine.clock.wall().timestamp(), before)

    def _hit(self) -> set[str]:
        """The components whose pods do not all run: a lost machine may hit several."""
        hit = {self._outage.component}
        for each in self._workloads():
            workload = each["metadata"]["name"]
            running = self._engine.world.data_plane.pods(f"{NAMESPACE}/{workload}-*")
            if len(running) < each["spec"]["replicas"]:
                hit.add(workload.removeprefix(f"{self._name}-"))
        return hit

    def _workloads(self) -> list[Json]:
        """The StatefulSets of the cluster."""
        found = self._engine.admin.list_page(STATEFUL_SETS, NAMESPACE).items
        return [obj.decode() for obj in found if obj.metadata.name.startswith(f"{self._name}-")]

    def _is_whole(self) -> bool:
        """True if all pods of the cluster are Ready."""
        pods = [item.decode() for item in self._engine.admin.list_page(PODS, NAMESPACE).items]
        ready = [pod for pod in pods if holds(pod, "Ready") and not pod["metadata"].get("deletionTimestamp")]
        return all(
            _count(ready, workload["metadata"]["name"]) == workload["spec"]["replicas"]
            for workload in self._workloads()
        )

    def _tell(self, when: str, found: Iterator[str]) -> None:
        for what in found:
            self._report(f"{self._outage.component}: {when}: {what}")


def _is_of_cluster(metric: str) -> bool:
    return metric.startswith(("tidb_operator_cluster_", "tidb_operator_dm_cluster_"))


def _count(pods: list[Json], workload: str) -> int:
    return sum(pod["metadata"]["name"].rpartition("-")[0] == workload for pod in pods)


def contradictions(seen: Surfaces) -> Iterator[str]:
    """Contradictions between two surfaces at the same instant."""
    ready, report = seen.ready.get("status") == "True", seen.report
    if report.ready is not ready or report.reason != seen.ready.get("reason", ""):
        yield f"the document says {report.ready}, {report.reason}, the condition {seen.ready}"
    if seen.columns["Ready"] != seen.ready.get("status") or seen.columns["Status"] != seen.ready.get("message"):
        yield "the printed columns differ from the condition"
    if not ready and (
        report.reason not in seen.page or report.message not in seen.page or report.reason not in seen.line
    ):
        yield f"the page does not say {report.reason}: {report.message}"
    if f"{_GREEN}?" in seen.coloured_page:
        yield "the page shows in green what is unknown"
    if ready and (wrong := sorted(seen.reasons)):
        yield f"Ready is True while a component gives the reason {', '.join(wrong)}"
    yield from _of_pods(seen, is_ready=ready)
    yield from _of_metrics(seen, is_ready=ready)
    yield from _of_doctor(seen, is_ready=ready)


def _of_pods(seen: Surfaces, *, is_ready: bool) -> Iterator[str]:
    for component in seen.report.components:
        if is_ready and component.last_seen:
            yield f"Ready is True while the members of {component.name} cannot be asked"
        if component.last_seen and f"?/{component.desired}" not in seen.page:
            yield f"the page shows the members of {component.name} as if they had been asked"
    for pod in seen.report.pods:
        if pod.state in _NOT_RUNNING and pod.member and (pod.member.healthy or pod.member.leads):
            yield f"{pod.name} is {pod.state} and {pod.member.state}"


def _of_metrics(seen: Surfaces, *, is_ready: bool) -> Iterator[str]:
    if (seen.metrics["ready"][()] == 1) is not is_ready:
        yield "the metric ready differs from the condition"
    for component in seen.report.components:
        if component.name not in seen.parts:
            continue
        values = {name: seen.metrics.get(name, {}).get((component.name,)) for name in ("members", "healthy_members")}
        if values != {"members": component.members, "healthy_members": component.healthy}:
            yield f"{component.name} has {component.healthy} of {component.members} members, and as metrics {values}"
        observed = seen.metrics["observed"][component.name,]
        if (observed == 1) is not (component.last_seen is None):
            yield f"the metric observed of {component.name} is {observed}, and the status shows {component.last_seen}"
    metrics = {labels for labels, value in seen.metrics.get("unavailable", {}).items() if value}
    conditions = {(name, reason) for name, part in seen.parts.items() if (reason := _reason(part)) in REASONS}
    if metrics != conditions and {reason for _, reason in metrics} != seen.reasons & REASONS:
        yield f"the metric unavailable has {sorted(metrics)}, the conditions {sorted(conditions)}"


def _reason(part: Json) -> str:
    ready = condition_of(part.get("conditions") or (), "Ready")
    return str(ready.get("reason")) if ready.get("status") == "False" else ""


def _of_doctor(seen: Surfaces, *, is_ready: bool) -> Iterator[str]:
    found = [finding.reason for finding in seen.findings if finding.severity is Severity.PROBLEM]
    said = seen.reasons & REASONS
    if missing := sorted(said - set(found)):
        yield f"doctor does not find {', '.join(missing)}"
    if said and found and found[0] not in said:
        yield f"doctor begins with {found[0]} while {', '.join(sorted(said))} is why nothing serves"
    if is_ready and (more := sorted(set(found) & REASONS)):
        yield f"doctor finds {', '.join(more)} while Ready is True"


def unreported(seen: Surfaces, outage: Outage, begun_at: float, hit: Collection[str]) -> Iterator[str]:
    """Outages that are not shown.

    `begun_at` is the start in seconds of the time of day; `hit` are the components that lack pods.
    """
    if outage.secret:
        yield from _unnamed(seen, outage.secret)
    if outage.secret or not outage.shows:
        return
    reason, message = str(seen.ready.get("reason")), str(seen.ready.get("message"))
    if seen.ready.get("status") != "False":
        yield "Ready is not False"
        return
    if outage.reasons and reason not in outage.reasons:
        yield f"Ready gives the reason {reason}, and {' or '.join(outage.reasons)} is the cause: {message}"
    named = {outage.component} if outage.reasons else hit
    if not any(each in message or component_type(each).title in message for each in named):
        yield f"the message of Ready does not name {', '.join(sorted(named))}: {message}"
    if reason in REASONS and not any(_is_warning(event, reason, begun_at) for event in seen.events):
        yield f"no Warning event has the reason {reason}"
    if all(finding.severity is not Severity.PROBLEM for finding in seen.findings):
        yield "doctor finds no problem"


def _unnamed(seen: Surfaces, secret: str) -> Iterator[str]:
    """Surfaces that do not name a missing Secret."""
    said = f"Secret {NAMESPACE}/{secret} does not exist"
    if seen.certificates.get("status") != "False" or said not in str(seen.certificates.get("message")):
        yield f"CertificatesValid does not name Secret {secret}: {seen.certificates}"
    if said not in seen.page:
        yield f"the page does not name Secret {secret}"
    if all(secret not in named for finding in seen.findings for named in finding.objects):
        yield f"doctor does not name Secret {secret}"


def _is_warning(event: Json, reason: str, since: float) -> bool:
    time = parse_time(str(event.get("lastTimestamp") or ""))
    return (event["type"], event["reason"]) == ("Warning", reason) and bool(time and time.timestamp() >= int(since))


def uncleared(seen: Surfaces) -> Iterator[str]:
    """What is still shown of an outage that has ended."""
    if seen.ready.get("status") != "True":
        yield f"Ready is still False: {seen.ready.get('reason')}: {seen.ready.get('message')}"
    if seen.certificates.get("status") == "False":
        yield f"CertificatesValid is still False: {seen.certificates['message']}"
    if left := sorted(seen.reasons & REASONS):
        yield f"{', '.join(left)} is still a reason"
