"""`tidb-operator run --sandbox`: a sandbox and the controller-manager in one process, speaking HTTP with each other.

With a manifest, its clusters are shown while they come up.
"""

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

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from cli import manifests
from cli.progress import blocked_by, is_ready, view
from cli.world import new_world
from controller_manager.flags import parse
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.shutdown import stopping_on_signals
from controller_manager.tidb import tidb_controller_manager
from kube.client import Client
from kube.config import load_kubeconfig
from kube.errors import ApiError
from kube.objects import Object
from kube.resources import TIDB_CLUSTERS
from ports.clock import Clock, SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import TransportError
from sandbox.world import World

_GIVE_UP = 120.0
"""Seconds after which a cluster that was waited for counts as stuck."""

_READY, _STUCK, _STOPPED = range(3)

_PROGRAM = "tidb-operator-py"


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


def run(demo: Demo, flags: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run until a signal, or until the clusters are Ready when that was asked for; the exit code."""
    try:
        documents = manifests.read(demo.cluster) if demo.cluster else []
    except manifests.BadManifest as error:
        print(error, file=sys.stderr)
        return 1
    clock = SystemClock()
    directory = Path(tempfile.mkdtemp(prefix="tidb-sandbox-"))
    with stopping_on_signals(stop := Stop()), (directory / "operator.log").open("w") as log:
        configure_logs(0, clock=clock, stream=log)
        log_uncaught_exceptions()
        stage = _Stage(new_world(clock, SystemRandomness()), directory, Console(), clock, stop)
        try:
            with _running(stage, flags, environ):
                return _show(demo, documents, stage)
        except manifests.BadManifest as error:
            print(error, file=sys.stderr)
        except ApiError as error:
            print(f"{demo.cluster}: refused by the API server: {error.message}", file=sys.stderr)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return 1


@contextmanager
def _running(stage: _Stage, flags: Sequence[str], environ: Mapping[str, str]) -> Iterator[None]:
    """The sandbox and the controller-manager, for as long as the block runs."""
    stage.world.start()
    try:
        kubeconfig = str(stage.world.write_kubeconfig(stage.directory))
        _, proxy = stage.world.serve_http()
        inside = {**environ, "HTTP_PROXY": proxy, "http_proxy": proxy}
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
    manifests.apply(stage.world.client(), list(documents))
    clusters = {(d.namespace, d.name) for d in documents if d.kind == TIDB_CLUSTERS.kind}
    started = stage.clock.now()
    if clusters:
        how = _follow(clusters, stage)
        if how == _STUCK and demo.exit_when_ready:
            return 1
        if how == _READY:
            stage.console.print(f"\nReady after {stage.clock.now() - started:.1f} s.", highlight=False)
    if demo.exit_when_ready or stage.stop.is_set():
        return 0
    _print_next_steps(clusters, stage)
    stage.stop.wait(stage.clock)
    return 0


def _follow(clusters: set[tuple[str, str]], stage: _Stage) -> int:
    """Show the clusters until all are Ready."""
    ready: set[tuple[str, str]] = set()
    deadline = stage.clock.now() + _GIVE_UP
    with view(stage.console) as shown:
        for seen in _changes(stage.world.client(), stage.stop):
            key = (seen.metadata.namespace, seen.metadata.name)
            if key not in clusters:
                continue
            tc = decode(seen.decode(), TidbCluster)
            shown.show("/".join(key) if len(clusters) > 1 else key[1], tc)
            (ready.add if is_ready(tc) else ready.discard)(key)
            if ready == clusters:
                return _READY
            blocked = blocked_by(tc)
            if blocked or stage.clock.now() > deadline:
                why = blocked or "see its conditions"
                stage.console.print(f"\n{key[1]} does not get Ready by itself: {why}", markup=False)
                return _STUCK
    return _STOPPED


def _changes(client: Client, stop: Stop) -> Iterator[Object]:
    """Every TidbCluster as it is, then as it changes."""
    page = client.list_page(TIDB_CLUSTERS)
    yield from page.items
    watch = client.watch(TIDB_CLUSTERS, resource_version=page.resource_version, timeout_seconds=int(_GIVE_UP))
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


def _print_next_steps(clusters: set[tuple[str, str]], stage: _Stage) -> None:
    """Commands that work right now, for those who have kubectl and for those who have not."""
    api, _ = stage.world.serve_http()
    namespace, name = min(clusters, default=("default", ""))
    patch = msgspec.json.encode({"spec": {"tikv": {"replicas": 3}}}).decode()
    url = f"{api}{TIDB_CLUSTERS.path(namespace, name)}"
    lines = ["", "What to try next, in another terminal:", ""]
    if shutil.which("kubectl"):
        lines += [f"    source {stage.directory}/env", f"    kubectl get tc,pods -n {namespace}"]
        if name:
            lines += [
                f"    kubectl describe tc {name} -n {namespace}",
                f"    kubectl patch tc {name} -n {namespace} --type=merge -p '{patch}'    # more TiKV",
            ]
    else:
        lines += [f"    curl -s {url}"]
        if name:
            header = "-H 'Content-Type: application/merge-patch+json'"
            lines += [f"    curl -s -X PATCH {header} -d '{patch}' {url}    # more TiKV"]
    lines += ["", f"The operator's log: {stage.directory}/operator.log", "Ctrl-C ends it; nothing is kept."]
    stage.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
