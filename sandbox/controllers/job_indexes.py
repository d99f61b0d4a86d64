"""The indexes of an Indexed Job whose indexes are retried one by one (`backoffLimitPerIndex`)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kube.objects import Json

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
_VARIABLE = "JOB_COMPLETION_INDEX"


@dataclass(frozen=True, slots=True)
class Indexes:
    """The state of each index: complete, failed for good, with a pod, and the number of its failed pods."""

    count: int
    complete: frozenset[int]
    failed: frozenset[int]
    active: frozenset[int]
    failures: dict[int, int]

    @property
    def missing(self) -> list[int]:
        """The indexes that need a pod."""
        return [each for each in range(self.count) if each not in self.complete | self.failed | self.active]

    def end(self, most: int | None) -> tuple[str, str, str] | None:
        """The end of the Job as condition, reason and message; `most`: the failed indexes that it may have."""
        if most is not None and len(self.failed) > most:
            reason = "MaxFailedIndexesExceeded"
            return "Failed", reason, "Job has exceeded the specified maximal number of failed indexes"
        if len(self.complete) + len(self.failed) < self.count:
            return None
        if self.failed:
            return "Failed", "FailedIndexes", "Job has failed indexes"
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"


def is_indexed(job: Json) -> bool:
    """True if each index is retried by itself."""
    return job["spec"].get("completionMode") == "Indexed" and job["spec"].get("backoffLimitPerIndex") is not None


def indexes_of(job: Json, succeeded: list[Json], failed: list[Json], active: list[Json]) -> Indexes:
    """The indexes of a Job from its status and its pods."""
    before = job.get("status") or {}
    failures: dict[int, int] = {}
    for pod in failed:
        told = int(pod["metadata"]["annotations"].get(FAILURES, "0")) + 1
        failures[_index(pod)] = max(told, failures.get(_index(pod), 0))
    complete = {*numbers(before.get("completedIndexes", "")), *map(_index, succeeded)}
    limit = job["spec"]["backoffLimitPerIndex"]
    given_up = {index for index, number in failures.items() if number > limit and index not in complete}
    return Indexes(
        job["spec"]["completions"],
        frozenset(complete),
        frozenset({*numbers(before.get("failedIndexes", "")), *given_up}),
        frozenset(map(_index, active)),
        failures,
    )


def of_index(pod: Json, job: str, index: int, failures: int) -> Json:
    """A pod of a Job with the name, host name, label, annotations and variable of its index."""
    meta, own = pod["metadata"], {INDEX: str(index)}
    suffix = meta["name"].rpartition("-")[2]
    named = {"name": f"{job}-{index}-{suffix}", "generateName": f"{job}-{index}-"}
    noted = {
        "labels": (meta.get("labels") or {}) | own,
        "annotations": (meta.get("annotations") or {}) | own | {FAILURES: str(failures)},
    }
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    variable = {"name": _VARIABLE, "valueFrom": source}
    spec = pod["spec"] | {"hostname": f"{job}-{index}"}
    for key in ("initContainers", "containers"):
        if key in spec:
            spec[key] = [each | {"env": [*(each.get("env") or ()), variable]} for each in spec[key]]
    return pod | {"metadata": meta | named | noted, "spec": spec}


def text(indexes: Collection[int]) -> str:
    """Indexes as in a status: `0,2-4`."""
    return ",".join(_runs(sorted(indexes)))


def numbers(told: str) -> Iterator[int]:
    """The indexes in such a text."""
    for run in filter(None, told.split(",")):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _runs(indexes: list[int]) -> Iterator[str]:
    while indexes:
        length = next((at for at, each in enumerate(indexes) if each != indexes[0] + at), len(indexes))
        first, last = indexes[0], indexes[length - 1]
        yield str(first) if length == 1 else f"{first}{',' if length == 2 else '-'}{last}"
        indexes = indexes[length:]


def _index(pod: Json) -> int:
    return int(pod["metadata"]["annotations"][INDEX])
