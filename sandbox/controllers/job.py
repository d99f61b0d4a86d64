"""The Job controller: runs pods until enough have succeeded or too many have failed."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from kube.errors import Forbidden, Invalid
from kube.objects import Json
from kube.resources import JOBS, PODS
from sandbox.cluster import Cluster
from sandbox.conditions import condition, holds, with_condition
from sandbox.controllers.job_indexes import INDEX, indexes_of, is_indexed, of_index, text
from sandbox.owners import controller_reference, controller_uid, is_deleted
from sandbox.stamps import parse, stamp

_LONGEST_PAUSE = 600.0
_RETRY = 10.0
"""Seconds before a rejected pod is created again."""
_TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until it has been counted."""
_ENDS = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The two ends of a Job, each with the condition that announces it."""


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts of a Job's pods: active, ready, succeeded and failed.

    `uncounted` are the UIDs of pods that are counted and still have their finalizer, by result.
    """

    active: list[Json]
    ready: int
    succeeded: int
    failed: int
    uncounted: dict[str, list[str]]


class Jobs:
    """Advances every Job by one step."""

    name = "job"
    watches: tuple[Hashable, ...] = (JOBS, PODS)

    def __init__(self, cluster: Cluster, pause: float) -> None:
        """`pause`: seconds between the first failure and the next pod, doubled with each further failure."""
        self._cluster = cluster
        self._pause = pause

    def step(self) -> float | None:
        """Create, count and delete pods; return when the next Job is due."""
        jobs = self._cluster.list(JOBS)
        self._release_orphans({job["metadata"]["uid"] for job in jobs if not is_deleted(job)})
        due = [self._sync(job) for job in jobs if not is_deleted(job)]
        return min((time for time in due if time is not None), default=None)

    def _sync(self, job: Json) -> float | None:
        if any(holds(job, kind) for kind in _ENDS):
            self._release(pod for pod in self._pods(job) if _end_of(pod))
            return self._expire(job)
        counts, status = self._counted(job), dict(job.get("status") or {})
        now = stamp(self._cluster.clock.wall())
        if job["spec"].get("suspend"):
            self._delete(counts.active)
            status["conditions"] = with_condition(
                status.get("conditions"), "Suspended", True, now, reason="JobSuspended", message="Job suspended"
            )
            return self._report(job, status, counts)
        status.setdefault("startTime", now)
        if is_indexed(job):
            return self._sync_indexes(job, status, counts)
        if end := _end(job, counts, self._age(status)):
            return self._finish(job, status, counts, end)
        return self._report(job, status, counts, self._fill(job, counts, status))

    def _sync_indexes(self, job: Json, status: Json, counts: _Counts) -> float | None:
        """Create the pod of each index that needs one, after a pause if its last one failed."""
        pods, spec = self._pods(job), job["spec"]
        by_end = {end: [pod for pod in pods if _end_of(pod) == end] for end in ("succeeded", "failed", "")}
        indexes = indexes_of(job, by_end["succeeded"], by_end["failed"], by_end[""])
        told = {"completedIndexes": indexes.complete, "failedIndexes": indexes.failed}
        status |= {key: text(each) for key, each in told.items() if each or key == "failedIndexes"}
        if end := indexes.end(spec.get("maxFailedIndexes")):
            return self._finish(job, status, counts, end)
        room = spec.get("parallelism", 1) - len(counts.active)
        due: list[float] = []
        for index in indexes.missing[: max(room, 0)]:
            failed = [pod for pod in by_end["failed"] if pod["metadata"]["annotations"][INDEX] == str(index)]
            if (rest := self._pause_after(failed, indexes.failures.get(index, 0))) > 0:
                due.append(self._cluster.clock.now() + rest)
            else:
                pod = of_index(self._pod(job), job["metadata"]["name"], index, indexes.failures.get(index, 0))
                self._cluster.create(PODS, pod)
        return self._report(job, status, counts, min(due, default=None))

    def _pods(self, job: Json) -> list[Json]:
        meta = job["metadata"]
        return [pod for pod in self._cluster.list(PODS, meta["namespace"]) if controller_uid(pod) == meta["uid"]]

    def _counted(self, job: Json) -> _Counts:
        """Count pods that have ended; release those whose count is already in the status.

        A deleted pod counts as failed, and a pod that vanished after it was counted stays counted.
        """
        before = job.get("status") or {}
        noted: Json = before.get("uncountedTerminatedPods") or {}
        known = {uid for uids in noted.values() for uid in uids}
        pods = self._pods(job)
        self._release(pod for pod in pods if pod["metadata"]["uid"] in known)
        tracked = [pod for pod in pods if _TRACKING in (pod["metadata"].get("finalizers") or ())]
        uncounted: dict[str, list[str]] = {}
        numbers = {end: before.get(end, 0) for end in ("succeeded", "failed")}
        for pod in tracked:
            if end := _end_of(pod):
                uncounted.setdefault(end, []).append(pod["metadata"]["uid"])
                numbers[end] += pod["metadata"]["uid"] not in known
        active = [pod for pod in pods if not _end_of(pod)]
        ready = sum(holds(pod, "Ready") for pod in active)
        return _Counts(active, ready, numbers["succeeded"], numbers["failed"], uncounted)

    def _release_orphans(self, jobs: set[str]) -> None:
        """Release the pods of Jobs that are deleted or being deleted, because they need not be counted."""
        for pod in self._cluster.list(PODS):
            if _TRACKING in (pod["metadata"].get("finalizers") or ()) and controller_uid(pod) not in jobs:
                self._release([pod])

    def _release(self, pods: Iterable[Json]) -> None:
        for pod in pods:
            finalizers = pod["metadata"].get("finalizers") or []
            if _TRACKING in finalizers:
                left = [each for each in finalizers if each != _TRACKING]
                self._cluster.patch(PODS, pod, {"metadata": {"finalizers": left}})

    def _age(self, status: Json) -> float:
        """Seconds since the Job started."""
        return (self._cluster.clock.wall() - parse(status["startTime"])).total_seconds()

    def _fill(self, job: Json, counts: _Counts, status: Json) -> float | None:
        """Create missing pods, after a pause if the last one failed; return when to run again."""
        spec = job["spec"]
        wanted: int = spec.get("parallelism", 1)
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - counts.succeeded)
        deadline = spec.get("activeDeadlineSeconds")
        clock = self._cluster.clock
        due = None if deadline is None else clock.now() + max(deadline - self._age(status), 0.0)
        if wanted <= len(counts.active):
            return due
        if (rest := self._rest(job, counts)) > 0:
            again: float = clock.now() + rest
            return again if due is None else min(due, again)
        for _ in range(wanted - len(counts.active)):
            try:
                self._cluster.create(PODS, self._pod(job))
            except (Invalid, Forbidden) as error:
                self._cluster.event(job, "Warning", "FailedCreate", f"Error creating: {error.message}")
                return clock.now() + _RETRY
        return due

    def _rest(self, job: Json, counts: _Counts) -> float:
        """Seconds until a new pod may follow the last failed one."""
        if not counts.failed:
            return 0.0
        return self._pause_after(self._pods(job), counts.failed)

    def _pause_after(self, pods: Iterable[Json], failures: int) -> float:
        """Seconds until a new pod may follow the last one that failed of `pods`."""
        ended = [
            container["state"]["terminated"]["finishedAt"]
            for pod in pods
            if (pod.get("status") or {}).get("phase") == "Failed"
            for container in pod["status"].get("containerStatuses") or ()
            if "terminated" in container["state"]
        ]
        if not ended:
            return 0.0
        pause = min(self._pause * 2 ** (failures - 1), _LONGEST_PAUSE)
        return (parse(max(ended)) + timedelta(seconds=pause) - self._cluster.clock.wall()).total_seconds()

    def _pod(self, job: Json) -> Json:
        template, meta = job["spec"]["template"], job["metadata"]
        own = dict(template.get("metadata") or {}) | {
            "name": f"{meta['name']}-{self._cluster.suffix()}",
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "ownerReferences": [controller_reference(job)],
            "finalizers": [_TRACKING],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": template["spec"]}

    def _delete(self, pods: list[Json]) -> None:
        for pod in pods:
            self._cluster.delete(PODS, pod)

    def _finish(self, job: Json, status: Json, counts: _Counts, end: tuple[str, str, str]) -> float | None:
        kind, reason, message = end
        now = stamp(self._cluster.clock.wall())
        self._delete(counts.active)
        conditions = status.get("conditions")
        for each in (_ENDS[kind], kind):
            conditions = with_condition(conditions, each, True, now, reason=reason, message=message)
        status["conditions"] = conditions
        if kind == "Complete":
            status["completionTime"] = now
        event = ("Normal", "Completed", "Job completed") if kind == "Complete" else ("Warning", reason, message)
        self._cluster.event(job, *event)
        self._report(job, status, _Counts([], 0, counts.succeeded, counts.failed, {}))
        return self._cluster.clock.now()

    def _report(self, job: Json, status: Json, counts: _Counts, due: float | None = None) -> float | None:
        numbers = {"active": len(counts.active), "succeeded": counts.succeeded, "failed": counts.failed}
        kept = {key: value for key, value in status.items() if key not in numbers}
        kept |= {key: number for key, number in numbers.items() if number}
        kept |= {"ready": counts.ready, "terminating": 0, "uncountedTerminatedPods": counts.uncounted}
        self._cluster.set_status(JOBS, job, kept)
        return due

    def _expire(self, job: Json) -> float | None:
        """Delete a finished Job when its TTL has passed."""
        lifetime = job["spec"].get("ttlSecondsAfterFinished")
        if lifetime is None:
            return None
        ended = [found for kind in _ENDS if (found := condition(job["status"].get("conditions"), kind)) is not None]
        end = parse(ended[0]["lastTransitionTime"]) + timedelta(seconds=lifetime)
        rest = (end - self._cluster.clock.wall()).total_seconds()
        if rest > 0:
            return self._cluster.clock.now() + rest
        self._cluster.delete(JOBS, job, propagation="Background")
        return None


def _end(job: Json, counts: _Counts, age: float) -> tuple[str, str, str] | None:
    """The end of a Job as condition, reason and message; None while it continues."""
    spec = job["spec"]
    completions, deadline = spec.get("completions"), spec.get("activeDeadlineSeconds")
    if counts.failed > spec.get("backoffLimit", 6) or _restarted_too_often(job, counts):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if deadline is not None and age >= deadline:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    done = counts.succeeded >= completions if completions is not None else counts.succeeded and not counts.active
    return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if done else None


def _end_of(pod: Json) -> str:
    """The result of a pod: `succeeded` or `failed`, empty while it is active."""
    phase = (pod.get("status") or {}).get("phase")
    if phase == "Succeeded":
        return "succeeded"
    return "failed" if phase == "Failed" or is_deleted(pod) else ""


def _restarted_too_often(job: Json, counts: _Counts) -> bool:
    """True if restarted containers have failed as often as whole pods may."""
    spec = job["spec"]
    if spec["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        container.get("restartCount", 0)
        for pod in counts.active
        for key in ("initContainerStatuses", "containerStatuses")
        for container in (pod.get("status") or {}).get(key) or ()
    )
    return bool(restarts >= max(spec.get("backoffLimit", 6), 1))
