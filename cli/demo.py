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

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from cli import certs, hints, manifests, prometheus
from cli.other_kinds import Others
from cli.progress import blocked_by, is_ready, view, waits_for
from cli.world import new_world
from controller_manager.flags import parse
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.shutdown import stopping_on_signals
from controller_manager.tidb import tidb_controller_manager
from kube.client import Client
from kube.config import load_kubeconfig
from kube.objects import Object
from kube.resources import TIDB_CLUSTERS, TIDB_MONITORS
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
    clusters = {(d.namespace, d.name) for d in documents if d.kind == TIDB_CLUSTERS.kind}
    started = stage.clock.now()
    try:
        ready = not clusters or _get_ready(clusters, stage)
        _await_others(documents, stage)
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
        _print_next_steps(clusters, stage)
        _print_monitors(documents, stage)
        stage.stop.wait(stage.clock)
    return 0


def _certificates(documents: Sequence[manifests.Manifest], stage: _Stage) -> list[manifests.Manifest]:
    """The Secrets that clusters need and the manifest does not have, made as `tidb-operator certs` does.

    Raises Failure.
    """
    return [manifests.Manifest("certificates", each) for each in certs.secrets(documents, stage.directory / "ca")]


def _get_ready(clusters: set[tuple[str, str]], stage: _Stage) -> bool:
    """Show the clusters until all are Ready; False when a signal came first. Raises _NotReady."""
    waiting: dict[tuple[str, str], str] = dict.fromkeys(clusters, "the operator has not looked at it yet")
    deadline = stage.clock.now() + _GIVE_UP
    with view(stage.console) as shown:
        while (left := deadline - stage.clock.now()) > 0:
            for seen in _changes(stage.world.client(), stage.stop, left):
                key = (seen.metadata.namespace, seen.metadata.name)
                if key not in clusters:
                    continue
                tc = decode(seen.decode(), TidbCluster)
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


def _await_others(documents: Sequence[manifests.Manifest], stage: _Stage) -> None:
    """Show what else the manifest has until that is Ready, too. Raises _NotReady."""
    others = Others(documents)
    left = others.get_ready(stage.world.client(), stage.console, stage.clock, stage.stop, _GIVE_UP)
    if left and not stage.stop.is_set():
        raise _NotReady(left)


def _print_monitors(documents: Sequence[manifests.Manifest], stage: _Stage) -> None:
    """How to have a real Prometheus run what the monitors of the manifest say."""
    _, proxy = stage.world.serve_http()
    for each in documents:
        if each.kind != TIDB_MONITORS.kind:
            continue
        monitor = each.namespace, each.name
        if path := prometheus.write_configuration(stage.world.client(), monitor, stage.directory, proxy):
            data = stage.directory / "prometheus"
            command = f"prometheus --config.file={path} --storage.tsdb.path={data}"
            lines = (
                f"A real Prometheus for TidbMonitor {each.name}, on http://127.0.0.1:9090:",
                f"\n    {command}\n",
                "It must find pods of Kubernetes, which Debian's does not: `make prometheus` builds one, "
                "hack/prometheus/bin/prometheus.",
            )
            stage.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _changes(client: Client, stop: Stop, seconds: float) -> Iterator[Object]:
    """Every TidbCluster as it is, then as it changes, for some time."""
    page = client.list_page(TIDB_CLUSTERS)
    yield from page.items
    watch = client.watch(TIDB_CLUSTERS, resource_version=page.resource_version, timeout_seconds=math.ceil(seconds))
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
    """Commands that work right now, with what this machine has."""
    api, _ = stage.world.serve_http()
    namespace, name = min(clusters, default=("default", ""))
    patch = msgspec.json.encode({"spec": {"tikv": {"replicas": 3}}}).decode()
    url = f"{api}{TIDB_CLUSTERS.path(namespace, name)}"
    lines = ["", "What to try next, in another terminal:", ""]
    if shutil.which("kubectl"):
        lines += [f"    {hints.source(stage.directory)}", f"    kubectl get tc,pods -n {namespace}"]
        if name:
            lines += [
                f"    kubectl describe tc {name} -n {namespace}",
                f"    kubectl patch tc {name} -n {namespace} --type=merge -p '{patch}'    # more TiKV",
            ]
    elif shutil.which("curl"):
        lines += [f"    curl -s {url}"]
        if name:
            header = "-H 'Content-Type: application/merge-patch+json'"
            lines += [f"    curl -s -X PATCH {header} -d '{patch}' {url}    # more TiKV"]
    else:
        lines += [f"    open {url} in a browser; with kubectl in PATH, `make run` shows what to type"]
    lines += ["", f"The operator's log: {stage.directory}/operator.log", "Ctrl-C ends it; nothing is kept."]
    stage.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
