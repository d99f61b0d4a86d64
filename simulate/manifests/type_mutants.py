"""Objects with a value of a wrong type that the published CRDs accept.

A CRD preserves embedded Kubernetes trees and configurations unchecked. One or two values of a rich spec, or of the
resulting status, therefore get other types or vanish, at any depth. If the API server accepts the object, the operator
reconciles it: it may reject the spec or wait, but must raise nothing and report no internal error.
"""

import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import count
from multiprocessing import get_context
from typing import Any

import msgspec

from apis.crd import KINDS as KINDS_OF_DEFINITIONS
from apis.crd import definition
from kube.errors import ApiError, NotFound
from kube.objects import Json, Object
from kube.resources import CONFIG_MAPS, SECRETS, TIDB_CLUSTERS, Resource
from ports.clock import FakeClock
from ports.randomness import Randomness, SeededRandomness
from rehearsal.operator import Operator
from rehearsal.world import COMMANDS, PROGRAMS
from sandbox.world import World
from simulate.engine.logs import silence
from simulate.engine.worlds import CLUSTERS
from simulate.families.draws import pick
from simulate.manifests.newcomers import DEFECT, Raised, Verdict
from simulate.manifests.rich_specs import KINDS, rich_spec

_NAMESPACE = "default"
_SECONDS = 3.0
"""Seconds in which a new object is reconciled a few times."""

_VALUES: Sequence[Any] = (
    *(True, False, 0, 1, -1, 1 << 31, 1 << 63, -(1 << 64), 0.5, 1e308, "", "x", "1", "a/b", "9" * 400),
    *([], [None], [1], ["x"], [True], [[]], [[[]]], [{}], [{"name": 1}], [{"name": "x"}, 1]),
    *({}, {"x": None}, {"x": 1}, {"name": []}, {"name": {"x": []}}, {"storage": [[]]}, {"a": {"b": {"c": [1]}}}),
)

_KEYS = ("some-key", "root", "password", "access_key", "secret_key", "credentials", "AZURE_STORAGE_KEY")
"""The keys of the Secrets to which objects refer."""

_BATCH = 50
"""The number of successive objects in one world."""

_WITH_STATUS_SUBRESOURCE = frozenset(kind.name for kind in KINDS_OF_DEFINITIONS if kind.status_subresource)

_Path = tuple[str | int, ...]


def kind_of(seed: int) -> Resource:
    """The kind of a seed's object: kinds take turns."""
    return KINDS[seed % len(KINDS)]


def judge(seeds: Sequence[int]) -> list[Verdict]:
    """The verdicts of seeds, whose objects are created and deleted in one world: `refused`, `reconciled` or
    `defect`.
    """
    world = MutantWorld(seeds[0])
    return [world.judge(seed) for seed in seeds]


def judge_all(seeds: Sequence[int], jobs: int) -> Iterator[Verdict]:
    """Like `judge`, in several processes."""
    batches = [seeds[first : first + _BATCH] for first in range(0, len(seeds), _BATCH)]
    with ProcessPoolExecutor(max(jobs, 1), mp_context=get_context("fork"), initializer=silence) as pool:
        for verdicts in pool.map(judge, batches):
            yield from verdicts


def _valid(seed: int) -> Json:
    resource = kind_of(seed)
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": rich_spec(resource)}
    return body | {"metadata": {"name": f"m{seed}", "namespace": _NAMESPACE}}


def _mutated(draw: Randomness, tree: Json) -> Json:
    """The tree with other or missing values in one or two places of its spec or status."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(tree))
    for _ in range(draw.integer(1, 2)):
        *way, last = pick(draw, [path for path in _paths(changed) if len(path) > 1 and path[0] in ("spec", "status")])
        holder: Any = changed
        for key in way:
            holder = holder[key]
        if draw.integer(0, len(_VALUES)):
            holder[last] = msgspec.json.decode(msgspec.json.encode(pick(draw, _VALUES)))
        else:
            del holder[last]
    return changed


def _paths(tree: object, path: _Path = ()) -> Iterator[_Path]:
    """Every place in a tree except its root."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


class MutantWorld:
    """A sandbox with one cluster, to which the mutants refer, and an operator whose exceptions are recorded."""

    def __init__(self, seed: int, given: Sequence[tuple[Resource, Json]] = ()) -> None:
        """`given` are further objects that exist from the start."""
        self._clock = FakeClock()
        self._world = World(
            self._clock, SeededRandomness(seed), programs=PROGRAMS, commands=COMMANDS, crds=_definitions()
        )
        self._admin = self._world.client()
        self._raised = raised = Raised()
        self._numbers = count()
        self._operator = Operator(
            self._world, self._clock, seed, watched=raised.watched, on_defect=lambda _, error: raised.note(error)
        )
        self._admin.create(TIDB_CLUSTERS, CLUSTERS["tiny"]() | {"metadata": {"name": "tiny"}}, _NAMESPACE)
        for name in ("passwords", "some-secret", "s3-keys", "tidb-password"):
            self._admin.create(SECRETS, {"metadata": {"name": name}, "data": dict.fromkeys(_KEYS, "eA==")}, _NAMESPACE)
        for name, key in (("prometheus", "prometheus-config"), ("rules", "rules.yml")):
            self._admin.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {key: "{}"}}, _NAMESPACE)
        for resource, body in given:
            self._admin.create(resource, body, _NAMESPACE)
        self._run(30.0)

    def judge(self, seed: int) -> Verdict:
        """The operator's reaction to a seed's mutant, which is new or becomes invalid later."""
        resource, tree, draw = kind_of(seed), _valid(seed), SeededRandomness(seed)
        name = tree["metadata"]["name"]
        self._raised.stacks.clear()
        try:
            if draw.integer(0, 1):
                self._admin.create(resource, _mutated(draw, tree), _NAMESPACE)
            else:
                self._admin.create(resource, tree, _NAMESPACE)
                self._run(_SECONDS)
                self._change(resource, _mutated(draw, self._admin.get(resource, name, _NAMESPACE).decode()))
        except ApiError as error:
            return Verdict(seed, "refused", error.message)
        try:
            self._run(_SECONDS)
            seen = self._admin.get(resource, name, _NAMESPACE).decode()
            self._remove(resource, name)
        except Exception:
            return Verdict(seed, DEFECT, traceback.format_exc())
        if self._raised.stacks:
            return Verdict(seed, DEFECT, self._raised.stacks[0])
        return _verdict(seed, seen.get("status") or {})

    def rest(self, seconds: float) -> None:
        """Let time pass, in which pods of deleted objects end."""
        self._run(seconds)

    def outcome_of(
        self, resource: Resource, spec: Json, kinds: Sequence[Resource], seconds: float, *, ends_within: float = 0.0
    ) -> tuple[list[Json], list[Json]] | str:
        """The result of an object with this spec: the objects that it owns or names, and its conditions; or the
        rejection.

        The object's name is `NAME` throughout. It is then deleted, and has `ends_within` seconds for its finalizers.
        """
        name = f"m{next(self._numbers):05}x"
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        try:
            made = self._admin.create(resource, body | {"metadata": {"name": name}}, _NAMESPACE)
        except ApiError as error:
            return error.message
        self._run(seconds)
        there = [(kind, item) for kind in kinds for item in self._admin.list_page(kind, _where(kind)).items]
        own = [(kind, each) for kind, each in there if _belongs(each, name, made.metadata.uid)]
        status = self._admin.get(resource, name, _NAMESPACE).decode().get("status") or {}
        found = [each.decode() for _, each in own], list(status.get("conditions") or ())
        if ends_within:
            self._admin.delete(resource, name, _NAMESPACE)
            self._run(ends_within)
        for kind, each in own:
            with suppress(NotFound):
                self._admin.delete(kind, each.metadata.name, _where(kind))
        self._remove(resource, name)
        text = msgspec.json.encode(found).replace(name.encode(), b"NAME")
        return msgspec.json.decode(text, type=tuple[list[Json], list[Json]])

    def raised_for(self, resource: Resource, spec: Json, seconds: float) -> list[str]:
        """The exceptions of the operator while it reconciles an object with this spec."""
        self._raised.stacks.clear()
        self.outcome_of(resource, spec, (), seconds)
        return list(self._raised.stacks)

    def _change(self, resource: Resource, tree: Json) -> None:
        written = self._admin.replace(resource, tree["metadata"]["name"], _NAMESPACE, tree)
        if "status" in tree and resource.kind in _WITH_STATUS_SUBRESOURCE:
            version = {"resourceVersion": written.metadata.resource_version}
            body = tree | {"metadata": tree["metadata"] | version}
            self._admin.replace(resource, tree["metadata"]["name"], _NAMESPACE, body, subresource="status")

    def _remove(self, resource: Resource, name: str) -> None:
        with suppress(NotFound):
            self._admin.patch(resource, name, _NAMESPACE, {"metadata": {"finalizers": []}})
            self._admin.delete(resource, name, _NAMESPACE)
        self._run(0.5)

    def _run(self, seconds: float) -> None:
        end = self._clock.now() + seconds
        while True:
            self._operator.work()
            if self._clock.now() >= end:
                return
            self._operator.let_pass(end)


def _where(kind: Resource) -> str:
    return _NAMESPACE if kind.namespaced else ""


def _belongs(found: Object, name: str, uid: str) -> bool:
    body = found.decode()
    owners = body["metadata"].get("ownerReferences") or ()
    claim = (body.get("spec") or {}).get("claimRef") or {}
    named = name in found.metadata.name or name in str(claim.get("name"))
    return named or any(owner["uid"] == uid for owner in owners)


def _verdict(seed: int, status: Json) -> Verdict:
    """The verdict of a status, which must report something; a CompactBackup has no conditions."""
    said = msgspec.json.encode(status).decode()
    if not status:
        return Verdict(seed, DEFECT, "the status is empty")
    return Verdict(seed, DEFECT if "internal error" in said else "reconciled", said)


@cache
def _definitions() -> list[Json]:
    return [definition(kind) for kind in KINDS_OF_DEFINITIONS]
