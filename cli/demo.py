"""`tidb-operator run --sandbox`: a sandbox and the controller-manager in one process, speaking HTTP with each other.

With a manifest, its clusters are shown while they come up.
"""

import math
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec
from rich.console import Console

from apis.cluster import Cluster
from apis.decoding import decode
from apis.dmcluster import DMCluster
from apis.tidbcluster import TidbCluster
from cli import certs, hints, manifests
from cli.progress import blocked_by, is_ready, view, waits_for
from cli.world import new_world
from controller_manager.flags import parse
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.shutdown import stopping_on_signals
from controller_manager.tidb import tidb_controller_manager
from kube.client import Client
from kube.config import load_kubeconfig
from kube.objects import Object
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, Resource
from member.context import RESOURCES
from ports.clock import Clock, SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import TransportError
from sandbox.world import World

_GIVE_UP = 120.0
"""Seconds after which a cluster that was waited for counts as stuck."""

_FAILED = 1

_PROGRAM = "tidb-operator-py"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

_MODELS: Mapping[str, type[Cluster]] = {TIDB_CLUSTERS.kind: TidbCluster, DM_CLUSTERS.kind: DMCluster}
"""What is shown until it is Ready, in this order."""
_TRIED = {TIDB_CLUSTERS.kind: ("tc", "tikv", "TiKV"), DM_CLUSTERS.kind: ("dc", "worker", "workers")}
"""The short name of a kind, and what to have more of."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What to show: the manifest to apply, if any, and whether to end once its clusters are Ready."""

    cluster: Path | None
    exit_when_ready: bool


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where it is shown."""

    world: World
    directory: Path
    console: Console
    clock: Clock
    stop: Stop


class _Console(Console):
    """Leaves it to the command what a reader who has gone means."""

    def on_broken_pipe(self) -> None:
        """Called while the error is handled."""
        raise  # noqa: PLE0704 - see above


class _NotReady(Exception):
    """Raised when clusters that were waited for do not get Ready; says which, and why."""


def run(demo: Demo, flags: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run until a signal, or until the clusters are Ready when that was asked for; the exit code.

    Raises Failure, OSError.
    """
    documents = manifests.read(demo.cluster) if demo.cluster else []
    clock = SystemClock()
    directory = Path(tempfile.mkdtemp(prefix="tidb-sandbox-"))
    try:
        with stopping_on_signals(stop := Stop()), (directory / "operator.log").open("w") as log:
            configure_logs(0, clock=clock, stream=log)
            log_uncaught_exceptions()
            stage = _Stage(new_world(clock, SystemRandomness()), directory, _Console(), clock, stop)
            with _running(stage, flags, environ):
                return _show(demo, documents, stage)
    finally:
        configure_logs(0, clock=clock, stream=sys.stderr)
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _running(stage: _Stage, flags: Sequence[str], environ: Mapping[str, str]) -> Iterator[None]:
    """The sandbox and the controller-manager, for as long as the block runs."""
    stage.world.start()
    try:
        kubeconfig = str(stage.world.write_kubeconfig(stage.directory))
        _, proxy = stage.world.serve_http()
        inside = {**environ, **{name: proxy for each in _PROXIES for name in (each, each.lower())}}
        options = parse([f"--kubeconfig={kubeconfig}", "--metrics-addr=127.0.0.1:0", *flags], inside, version(_PROGRAM))
        config = load_kubeconfig(kubeconfig, stage.clock)
        manager = tidb_controller_manager(options, config, inside, stage.clock, SystemRandomness())
        operator = threading.Thread(target=manager.run, args=(stage.stop,), name="controller-manager")
        operator.start()
        try:
            yield
        finally:
            stage.stop.set()
            operator.join()
    finally:
        stage.world.stop()


def _show(demo: Demo, documents: Sequence[manifests.Manifest], stage: _Stage) -> int:
    manifests.apply(stage.world.client(), [*_certificates(documents, stage), *documents])
    of_kinds = {kind: {(d.namespace, d.name) for d in documents if d.kind == kind} for kind in _MODELS}
    clusters = {each for some in of_kinds.values() for each in some}
    started = stage.clock.now()
    try:
        ready = all(_get_ready(kind, some, stage) for kind, some in of_kinds.items() if some)
    except _NotReady as error:
        stage.console.print(f"\n{error}", markup=False, highlight=False, soft_wrap=True)
        if demo.exit_when_ready:
            return _FAILED
    else:
        if clusters and ready:
            stage.console.print(f"\nReady after {stage.clock.now() - started:.1f} s.", highlight=False)
        if demo.exit_when_ready:
            return 0 if ready else _FAILED
    if not stage.stop.is_set():
        _print_next_steps(of_kinds, stage)
        stage.stop.wait(stage.clock)
    return 0


def _certificates(documents: Sequence[manifests.Manifest], stage: _Stage) -> list[manifests.Manifest]:
    """The Secrets that clusters need and the manifest does not have, made as `tidb-operator certs` does.

    Raises Failure.
    """
    return [manifests.Manifest("certificates", each) for each in certs.secrets(documents, stage.directory / "ca")]


def _get_ready(kind: str, clusters: set[tuple[str, str]], stage: _Stage) -> bool:
    """Show the clusters of a kind until all are Ready; False when a signal came first. Raises _NotReady."""
    waiting: dict[tuple[str, str], str] = dict.fromkeys(clusters, "the operator has not looked at it yet")
    deadline = stage.clock.now() + _GIVE_UP
    with view(stage.console) as shown:
        while (left := deadline - stage.clock.now()) > 0:
            for seen in _changes(stage.world.client(), RESOURCES[kind], stage.stop, left):
                key = (seen.metadata.namespace, seen.metadata.name)
                if key not in clusters:
                    continue
                tc = decode(seen.decode(), _MODELS[kind])
                shown.show("/".join(key) if len(clusters) > 1 else key[1], tc)
                waiting.pop(key, None)
                if not is_ready(tc):
                    waiting[key] = waits_for(tc)
                if not waiting:
                    return True
                if blocked := blocked_by(tc):
                    raise _NotReady(f"{key[1]} does not get Ready by itself: {blocked}")
            if stage.stop.is_set():
                return False
    raise _NotReady(
        "\n".join(f"{name} is not Ready after {_GIVE_UP:.0f} s: {why}" for (_, name), why in sorted(waiting.items()))
    )


def _changes(client: Client, resource: Resource, stop: Stop, seconds: float) -> Iterator[Object]:
    """Every cluster of a kind as it is, then as it changes, for some time."""
    page = client.list_page(resource)
    yield from page.items
    watch = client.watch(resource, resource_version=page.resource_version, timeout_seconds=math.ceil(seconds))
    with stop.calling(watch.abort):
        try:
            for event in watch:
                if event.type in ("ADDED", "MODIFIED") and isinstance(event.object, Object):
                    yield event.object
        except TransportError:
            if not stop.is_set():
                raise
        finally:
            watch.close()


def _print_next_steps(of_kinds: Mapping[str, set[tuple[str, str]]], stage: _Stage) -> None:
    """Commands that work right now, with what this machine has."""
    api, _ = stage.world.serve_http()
    kind = next((kind for kind, some in of_kinds.items() if some), TIDB_CLUSTERS.kind)
    short, part, title = _TRIED[kind]
    namespace, name = min(of_kinds[kind], default=("default", ""))
    patch = msgspec.json.encode({"spec": {part: {"replicas": 3}}}).decode()
    url = f"{api}{RESOURCES[kind].path(namespace, name)}"
    lines = ["", "What to try next, in another terminal:", ""]
    if shutil.which("kubectl"):
        lines += [f"    {hints.source(stage.directory)}", f"    kubectl get {short},pods -n {namespace}"]
        if name:
            lines += [
                f"    kubectl describe {short} {name} -n {namespace}",
                f"    kubectl patch {short} {name} -n {namespace} --type=merge -p '{patch}'    # more {title}",
            ]
    elif shutil.which("curl"):
        lines += [f"    curl -s {url}"]
        if name:
            header = "-H 'Content-Type: application/merge-patch+json'"
            lines += [f"    curl -s -X PATCH {header} -d '{patch}' {url}    # more {title}"]
    else:
        lines += [f"    open {url} in a browser; with kubectl in PATH, `make run` shows what to type"]
    lines += ["", f"The operator's log: {stage.directory}/operator.log", "Ctrl-C ends it; nothing is kept."]
    stage.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
