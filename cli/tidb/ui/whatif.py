"""A change or a loss that the user asks for in a form, and what its rehearsal has found."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cli import drill, plan
from cli.documents import BadDocument, decode_documents
from cli.drill_flags import OPERATOR
from cli.failures import Failure
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.status.report import Summary
from cli.tidb.status.reporting import summary
from cli.tidb.ui.cluster import Zone, read_cluster_view
from cli.tidb.ui.rehearsals import Rehearse
from cli.timeline import Timeline
from kube.client import Client
from kube.objects import Json
from ports.structs import convert
from rehearsal.damage import Damage
from rehearsal.forecast import Forecast
from sandbox.apiserver.patching import merge_patch

LASTING = ("", "1m", "5m", "10m", "30m", "1h")
"""How long a loss lasts; empty: for good."""

_MOST = 1000
"""The maximum number of replicas in a form."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a rehearsal has found about one cluster. `is_good`: it serves, and needs no help."""

    cluster: str
    verdict: str
    is_good: bool
    timeline: Timeline
    lines: Sequence[str]
    events: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The results of a rehearsal, what differs between the cluster and its twin, and the command for a terminal."""

    results: Sequence[Result]
    differences: Sequence[str]
    command: str


@dataclass(frozen=True, slots=True)
class Wish:
    """A change that a form asks for: what the form shows, and the patch of the spec, empty if nothing changes.

    `generation` belongs to the spec that the user has seen.
    """

    replicas: Mapping[str, int]
    version: str
    fields: str
    spec: Json
    generation: int


@dataclass(frozen=True, slots=True)
class PlanView:
    """The form for a change, and what its rehearsal has found. `patch` is the command that makes the change."""

    cluster: Summary
    wish: Wish
    patch: str = ""
    rehearsed: Rehearsed | None = None


@dataclass(frozen=True, slots=True)
class DrillView:
    """The form for a loss: what can be lost, by kind, and what is chosen."""

    cluster: Summary
    losses: Mapping[str, Sequence[str]]
    fail: str
    lasting: str
    rehearsed: Rehearsed | None = None


def plan_view(client: Client, rehearse: Rehearse, place: tuple[str, str], asked: Mapping[str, str]) -> PlanView:
    """The change that a form asks for, of the cluster at a place: namespace, and a name such as `tc/basic`.

    Raises Failure, ApiError, TransportError.
    """
    found = find_cluster(client, *place)
    wish = _wish(found, asked)
    if not wish.spec:
        return PlanView(summary(found), wish)
    settings = list(_settings(found.object.decode()["spec"], wish.spec))
    document, command = _rehearsed(rehearse, "plan", place, settings)
    results = [_planned(cluster) for cluster in document["clusters"]]
    rehearsed = Rehearsed(results, document["differences"], command)
    return PlanView(summary(found), wish, _patch(found, wish.spec), rehearsed)


def make_change(client: Client, place: tuple[str, str], asked: Mapping[str, str]) -> None:
    """Make the change that a form asks for, if the spec is still as its plan has seen it.

    Raises Failure, ApiError, TransportError.
    """
    found = find_cluster(client, *place)
    wish, meta = _wish(found, asked), found.object.metadata
    if str(wish.generation) != asked.get("generation"):
        raise Failure(
            f"the spec of {found.text} has changed since the plan was made, and nothing is written; plan again"
        )
    # with the version that was read, a change that comes in between fails this one
    patch: Json = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "spec": wish.spec}
    client.patch(found.resource, meta.name, meta.namespace, patch)


def _wish(found: Found, asked: Mapping[str, str]) -> Wish:
    """The change that a form asks for. Raises Failure."""
    now = dict(replicas_of(found))
    wanted = now | {name: _count(name, asked[name]) for name in now if asked.get(name, "").strip()}
    version = asked.get("version", "").strip() or found.cluster.spec.version
    spec: Json = {name: {"replicas": count} for name, count in wanted.items() if count != now[name]}
    spec |= {"version": version} if version != found.cluster.spec.version else {}
    fields = asked.get("fields", "")
    return Wish(wanted, version, fields, _joined(spec, _typed(fields)), found.object.metadata.generation)


def _joined(patch: Json, other: Json) -> Json:
    """Both merge patches as one; the other goes before where both name a field."""
    inner = {key: _joined(patch[key], value) for key, value in other.items() if _are_objects(patch.get(key), value)}
    return patch | other | inner


def _are_objects(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def _typed(text: str) -> Json:
    """The fields of `spec` that a form has in YAML. Raises Failure."""
    try:
        documents = [document for document in decode_documents(text.encode("utf-8", "replace")) if document is not None]
    except BadDocument as error:
        raise Failure(f"Other fields: {error}") from None
    match documents:
        case []:
            return {}
        case [dict() as tree] if tree.keys() != {"spec"}:
            return tree
        case [{"spec": dict() as tree}]:
            return tree
    raise Failure("Other fields: write fields of spec with their values, such as tikv: {config: {log-level: warn}}")


def _settings(now: Json, patch: Json, path: str = "spec") -> Iterator[str]:
    """A merge patch as flags; a path cannot have names with a dot, so the object around them is set as a whole."""
    for name, value in patch.items():
        there, at = now.get(name), f"{path}.{name}"
        if isinstance(value, dict) and value and not any("." in each for each in value):
            yield from _settings(there if isinstance(there, dict) else {}, value, at)
        else:
            # JSON is YAML
            yield f"--set={at}={json.dumps(None if value is None else merge_patch(there, value))}"


def drill_view(client: Client, rehearse: Rehearse, place: tuple[str, str], asked: Mapping[str, str]) -> DrillView:
    """The loss that a form asks for, as `plan_view`."""
    found = read_cluster_view(client, *place)
    losses = _losses(found.zones)
    fail, lasting = asked.get("fail", ""), asked.get("for", "")
    if fail and not any(fail in names for names in losses.values()):
        raise Failure(f"{fail} has no pod of this cluster; choose another loss")
    if lasting not in LASTING:
        raise Failure(f"{lasting} is no duration of the form")
    if not fail:
        return DrillView(found.report, losses, fail, lasting)
    flags = [f"--fail={fail}", *([f"--for={lasting}"] if lasting else [])]
    document, command = _rehearsed(rehearse, "drill", place, flags)
    results = [_drilled(cluster) for cluster in document["moments"][0]["clusters"]]
    return DrillView(found.report, losses, fail, lasting, Rehearsed(results, document["differences"], command))


def replicas_of(found: Found) -> Mapping[str, int]:
    """The number of replicas that the spec names, by component."""
    sections = found.object.decode()["spec"].items()
    return {name: own["replicas"] for name, own in sections if isinstance(own, dict) and "replicas" in own}


def _count(name: str, text: str) -> int:
    text = text.strip()
    if not text.isascii() or not text.isdecimal() or int(text) > _MOST:
        raise Failure(f"{name}: {text} is no number of replicas; write one from 0 to {_MOST}")
    return int(text)


def _losses(zones: Iterable[Zone]) -> Mapping[str, Sequence[str]]:
    """What can be lost, by kind, as `--fail` names it."""
    nodes = [node for zone in zones for node in zone.nodes if node.name]
    return {
        "Nodes": [f"node/{each.name}" for each in nodes],
        "Zones": [f"zone/{each.name}" for each in zones if each.name],
        "Pods": [f"pod/{pod.name}" for node in nodes for pod in node.pods],
        "Other": [OPERATOR],
    }


def _rehearsed(rehearse: Rehearse, verb: str, place: tuple[str, str], flags: Sequence[str]) -> tuple[Json, str]:
    """The document of a command, and the command for a terminal."""
    namespace, name = place
    arguments = [verb, name, f"--namespace={namespace}", *flags]
    return rehearse(arguments), shlex.join(["kubectl", "tidb", *arguments])


def _patch(found: Found, spec: Json) -> str:
    meta = found.object.metadata
    what = [found.resource.kind.lower(), meta.name, f"--namespace={meta.namespace}"]
    return shlex.join(["kubectl", "patch", *what, "--type=merge", f"--patch={json.dumps({'spec': spec})}"])


def _planned(document: Json) -> Result:
    forecast = convert(document | {"floors": document["lowest"]}, Forecast)
    lines = [f"Warning: {warning}" for warning in forecast.warnings]
    lines += [plan.lowest(forecast.floors)] if forecast.floors else []
    verdict, timeline = plan.verdict(forecast), plan.timeline_of(forecast)
    return Result(document["cluster"], verdict, plan.goes(forecast), timeline, lines)


def _drilled(document: Json) -> Result:
    names = {"outages": "stops", "spells": "regions", "floors": "lowest"}
    damage = convert(document | {field: document[name] for field, name in names.items()}, Damage)
    verdict, timeline = drill.verdict(damage), drill.timeline_of(damage)
    lines, events = list(drill.lines_of(damage)), drill.events_of(damage)
    return Result(document["cluster"], verdict, drill.holds_out(damage), timeline, lines, events)
