"""Rehearsals on the twin of a running cluster: the work of `kubectl tidb plan` and `kubectl tidb drill`."""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import yaml

from apis.components import component_type
from cli import certs, drill, manifests, plan
from cli.drill_flags import check_moment
from cli.failures import Failure
from cli.manifests import Manifest
from cli.policies import Policy
from cli.tidb.clusters import Found
from cli.tidb.session import Session
from kube.errors import ApiError
from kube.objects import Json
from kube.resources import SECRETS
from ports.clock import Clock
from rehearsal.change import entered, finish, rehearse_on
from rehearsal.recording import Recording, record
from rehearsal.stage import PACE
from rehearsal.twin import Twin, twin_of
from sandbox.timings import Timings


def show_plan(
    session: Session, found: Found, files: Sequence[Path], settings: Sequence[str], policies: Sequence[Policy]
) -> int:
    """Rehearse a change of a cluster by manifests and settings, print the plan, and return the exit code.

    Without files and settings, it is the rest of a change that is under way. Raises Failure, TransportError.
    """
    after: Sequence[Manifest] = []
    if files or settings or not _is_changing(found):
        after = _changed(found, [manifest for path in files for manifest in manifests.read(path)], settings)
    recording = _recorded(session, found)
    with plan.silent(session.clock):
        planned = _plan(recording, after, session.clock)
    planned = replace(planned, policies=policies)
    plan.show(planned, session.output)
    return planned.code


def show_drill(
    session: Session, found: Found, files: Sequence[Path], settings: Sequence[str], given: argparse.Namespace
) -> int:
    """Rehearse the loss that the flags of a drill name, print the report, and return the exit code.

    Without files and settings nothing changes meanwhile. Raises Failure, TransportError.
    """
    if files or settings:
        after = _changed(found, [manifest for path in files for manifest in manifests.read(path)], settings)
    else:
        check_moment(given, "-f, --set or --version")
        after = []
    recording = _recorded(session, found)
    objects = [manifest.body for manifest in after]
    with plan.silent(session.clock), plan.failing():
        twin = _twin(recording, after, session.clock)
        with twin.stage:
            report = drill.report_of(entered(twin, objects), objects, given, _basis(twin))
    drill.show(report, session.output)
    return report.code


def _is_changing(found: Found) -> bool:
    return any((each.type, each.status) == ("Progressing", "True") for each in found.cluster.status.conditions)


def _recorded(session: Session, found: Found) -> Recording:
    """The cluster as the user may read it. Raises PlanFailed."""
    try:
        return record(session.client, found.object.decode())
    except ApiError as error:
        raise plan.PlanFailed(f"{found.name} cannot be read: {error.message}") from None


def _changed(found: Found, given: Sequence[Manifest], settings: Sequence[str]) -> Sequence[Manifest]:
    """The manifests after the change; the cluster is among them. Raises Failure."""
    namespace, name = found.object.metadata.namespace, found.object.metadata.name
    placed = [_in_namespace(manifest, namespace) for manifest in given]
    is_it = [
        (manifest.kind, manifest.namespace, manifest.name) == (found.resource.kind, namespace, name)
        for manifest in placed
    ]
    if given and not any(is_it):
        raise Failure(f"{given[0].source.partition(',')[0]}: has no {found.resource.kind} {namespace}/{name}")
    if not given and not settings:
        raise Failure("nothing would change; name a manifest with -f, or use --set or --version")
    body = next((each.body for each, it in zip(placed, is_it, strict=True) if it), None) or _manifest(found)
    # JSON is YAML: a field that --set misspells is an error, as it is in a file
    (cluster,) = manifests.parse(msgspec.json.encode(_with(body, settings)), "the change")
    return [*(each for each, it in zip(placed, is_it, strict=True) if not it), cluster]


def _in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    meta = {"namespace": namespace} | manifest.body["metadata"]
    return replace(manifest, body=manifest.body | {"metadata": meta})


def _manifest(found: Found) -> Json:
    """The cluster as a user would write it."""
    tree, meta = found.object.decode(), found.object.metadata
    named = {"namespace": meta.namespace, "name": meta.name}
    return {key: tree[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": named}


def _with(body: Json, settings: Sequence[str]) -> Json:
    """An object with other values of fields. Raises Failure."""
    changed: Json = msgspec.json.decode(msgspec.json.encode(body))
    for each in settings:
        path, is_given, value = each.partition("=")
        head, *names = path.split(".")
        if head != "spec" or not names or not all(names) or not is_given:
            raise Failure(f"--set {each}: write the path of a field and its value, e.g. spec.tikv.replicas=5")
        _set(changed, [head, *names], _value(each, value))
    return changed


def _set(tree: Json, names: Sequence[str], value: object) -> None:
    """Set the field at a path. Raises Failure if an object on the way has another type."""
    *way, last = names
    for at, name in enumerate(way):
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise Failure(f"--set {'.'.join(names)}: {'.'.join(way[: at + 1])} is no object; use -f")
    tree[last] = value


def _value(setting: str, text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise Failure(f"--set {setting}: {text} is no value in YAML; quote it") from None


def _plan(recording: Recording, after: Sequence[Manifest], clock: Clock) -> plan.Plan:
    """Rehearse a change on the twin, or without objects the rest of the change under way. Raises Failure."""
    with plan.failing():
        twin = _twin(recording, after, clock, changing=not after)
        with twin.stage:
            rehearsed = rehearse_on(twin, [manifest.body for manifest in after]) if after else finish(twin)
    return plan.Plan(rehearsed.forecasts, plan.left_out(after), _basis(twin), changes=rehearsed.changes)


def _twin(recording: Recording, after: Sequence[Manifest], clock: Clock, *, changing: bool = False) -> Twin:
    secrets = list(_secrets(recording, after))
    return twin_of(recording, secrets, clock.wall(), Timings.real(), PACE, changing=changing)


def _secrets(recording: Recording, after: Sequence[Manifest]) -> Iterator[Json]:
    """Certificates in the Secrets that exist, as far as their names could be read; the rehearsal knows no keys."""
    documents = [*(Manifest("the cluster", cluster) for cluster in recording.clusters), *after]
    with tempfile.TemporaryDirectory(prefix="tidb-plan-") as place:
        issued = {_key(secret): secret for secret in certs.secrets(documents, Path(place))}
    for key, each in issued.items():
        if key in recording.secrets or str(SECRETS) in recording.unread:
            yield each


def _key(secret: Json) -> tuple[str, str]:
    return secret["metadata"]["namespace"], secret["metadata"]["name"]


def _basis(twin: Twin) -> plan.Basis:
    remarks = [f"Not in the twin: {each}." for each in twin.missing]
    if twin.wanted:
        first = "The operator would write this in the twin even without the change; compare `kubectl tidb diff`: "
        remarks.append(f"{first}{'; '.join(twin.wanted)}.")
    document = {"nodes": twin.nodes, "durations": _durations(twin.starts)}
    assumed = f"{twin.nodes} nodes and their pods as they are now, {_starts(twin.starts)}, and few regions"
    return plan.Basis(f"{assumed}: larger stores take longer", document, remarks)


def _durations(starts: Mapping[str, float]) -> Json:
    return {"default": "typical", "own": {name: round(seconds) for name, seconds in sorted(starts.items())}}


def _starts(starts: Mapping[str, float]) -> str:
    """Which durations are the cluster's own."""
    if not starts:
        return "durations of typical clusters"
    own = ", ".join(f"{component_type(name).title} {round(seconds)}s" for name, seconds in sorted(starts.items()))
    return f"starts as long as its own pods took ({own}), other durations of typical clusters"
