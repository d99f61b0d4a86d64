"""`tidb-operator run --sandbox`: a sandbox and the controller-manager in one process, connected over HTTP.

With manifests, it shows their clusters while they come up, and their Jobs, Backups and Restores while they run.
"""

import math
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from cli import certs, hints, manifests, sandbox
from cli.awaited import AWAITED, WORK, see
from cli.failures import Failure
from cli.progress import View, view
from cli.terminal import Printable
from cli.tidb.ui.command import page_of_sandbox
from controller_manager.flags import parse
from controller_manager.health import ListenError
from controller_manager.logs import configure_logs, log_uncaught_exceptions
from controller_manager.manager import ControllerManager
from controller_manager.shutdown import stopping_on_signals
from controller_manager.tidb import tidb_controller_manager
from controller_manager.version import project_version
from kube.client import Client
from kube.config import load_kubeconfig
from kube.objects import Object
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS, TIDB_MONITORS, Resource
from ports.clock import Clock, SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from ports.transport import TransportError
from rehearsal.world import new_world
from sandbox.world import World

_GIVE_UP = 120.0
"""Seconds after which an awaited cluster counts as stuck."""

_LOOK_AGAIN = 1.0
"""Seconds between two checks of clusters that users change."""

_FAILED = 1


@dataclass(frozen=True, slots=True)
class Demo:
    """The manifests to apply, if any, and whether to end once their clusters are Ready.

    `binaries` is a directory of programs to run as real processes.
    """

    files: tuple[Path, ...]
    exit_when_ready: bool
    binaries: Path | None = None


@dataclass(frozen=True, slots=True)
class _Stage:
    """The environment of a demonstration."""

    world: World
    directory: Path
    console: Console
    clock: Clock
    stop: Stop


class _Console(Console):
    """Leaves a broken pipe to the command."""

    def on_broken_pipe(self) -> None:
        """Re-raise; called while the error is handled."""
        raise  # noqa: PLE0704 - see above


class _NotReady(Exception):
    """Raised if awaited clusters do not become Ready; names them with the reasons."""


def run(demo: Demo, flags: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run until a signal or, on request, until the clusters are Ready; return the exit code.

    Raises Failure, OSError.
    """
    documents = [document for file in demo.files for document in manifests.read(file)]
    clock = SystemClock()
    directory = Path(tempfile.mkdtemp(prefix="tidb-sandbox-"))
    try:
        with stopping_on_signals(stop := Stop()), (directory / "operator.log").open("w", encoding="utf-8") as log:
            configure_logs(0, clock=clock, stream=log)
            log_uncaught_exceptions()
            world = new_world(clock, SystemRandomness(), machine=sandbox.machine_for(demo.binaries, clock))
            stage = _Stage(world, directory, _Console(), clock, stop)
            with _running(stage, flags, environ):
                return _show(demo, documents, stage)
    finally:
        configure_logs(0, clock=clock, stream=sys.stderr)
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _running(stage: _Stage, flags: Sequence[str], environ: Mapping[str, str]) -> Iterator[None]:
    """Run the sandbox and the controller-manager within the block."""
    stage.world.start()
    try:
        kubeconfig = str(stage.world.write_kubeconfig(stage.directory, hints.programs()))
        own = [f"--kubeconfig={kubeconfig}", "--metrics-addr=127.0.0.1:0"]
        options = parse([*own, *flags], environ, project_version())
        config = load_kubeconfig(kubeconfig, stage.clock)
        manager = tidb_controller_manager(options, config, environ, stage.clock, SystemRandomness())
        failures: list[ListenError] = []
        operator = threading.Thread(target=_operate, args=(manager, stage.stop, failures), name="controller-manager")
        operator.start()
        try:
            yield
        finally:
            stage.stop.set()
            operator.join()
        if failures:
            raise Failure(str(failures[0]))
    finally:
        stage.world.stop()


def _operate(manager: ControllerManager, stop: Stop, failures: list[ListenError]) -> None:
    """Run the controller-manager until `stop` is set; if it ends earlier, so ends the command."""
    try:
        manager.run(stop)
    except ListenError as error:
        failures.append(error)
    finally:
        stop.set()


def _show(demo: Demo, documents: Sequence[manifests.Manifest], stage: _Stage) -> int:
    """Raises Failure."""
    awaited = [document for document in documents if document.kind in AWAITED]
    started = stage.clock.now()
    manifests.apply(stage.world.client(), _certificates(documents, stage))
    shown = view(stage.console)
    try:
        done = _apply(documents, stage, shown)
    except _NotReady as error:
        stage.console.print(Printable(Text(f"\n{error}")), soft_wrap=True)
        if demo.exit_when_ready:
            return _FAILED
    else:
        if demo.exit_when_ready and not awaited:
            raise manifests.BadManifest(
                f"{', '.join(map(str, demo.files))}: contains nothing that gets Ready, such as a TidbCluster; "
                "name a file with one as well, or leave out --exit-when-ready"
            )
        if awaited and done:
            stage.console.print(f"\nReady after {stage.clock.now() - started:.1f} s.", highlight=False)
        if demo.exit_when_ready:
            return 0 if done else _FAILED
    if not stage.stop.is_set():
        with page_of_sandbox(stage.directory / "kubeconfig", stage.clock) as page:
            _print_monitors(documents, stage)
            _print_next_steps(documents, stage, page)
            _follow(documents, stage, shown)
    return 0


def _follow(documents: Sequence[manifests.Manifest], stage: _Stage, shown: View) -> None:
    """Show the awaited objects, and all TidbClusters while users change them, until a signal."""
    resources = dict.fromkeys(
        [TIDB_CLUSTERS, *(AWAITED[document.kind] for document in documents if document.kind in AWAITED)]
    )
    client, there = stage.world.client(), set[_Key]()
    several = _has_several_namespaces(documents)
    with shown:
        while not stage.stop.is_set():
            before, there = there, set()
            for resource in resources:
                for found in client.list_page(resource).items:
                    key = (resource, found.metadata.namespace, found.metadata.name)
                    there.add(key)
                    shown.show(_title(key, several), see(resource, found).rows)
            for key in before - there:
                shown.drop(_title(key, several))
            stage.stop.wait(stage.clock, _LOOK_AGAIN)


def _has_several_namespaces(documents: Sequence[manifests.Manifest]) -> bool:
    return len({document.namespace for document in documents if document.kind in AWAITED}) > 1


def _certificates(documents: Sequence[manifests.Manifest], stage: _Stage) -> list[manifests.Manifest]:
    """The missing Secrets of the clusters in a manifest, created as by `tidb-operator certs`.

    Raises Failure.
    """
    return [manifests.Manifest("certificates", secret) for secret in certs.secrets(documents, stage.directory / "ca")]


def _apply(documents: Sequence[manifests.Manifest], stage: _Stage, shown: View) -> bool:
    """Apply the documents in order; work starts when everything before it is finished.

    True if all became Ready, False after a signal. Raises _NotReady.
    """
    with shown:
        waits = _Waits(stage, shown, _has_several_namespaces(documents))
        for document in documents:
            resource = AWAITED.get(document.kind)
            if resource in WORK and not waits.end():
                return False
            manifests.apply(stage.world.client(), [document])
            if resource is not None:
                waits.add(resource, document)
        return waits.end()


_Key = tuple[Resource, str, str]
"""Resource, namespace and name."""


def _title(key: _Key, several: bool) -> str:
    """The title of an object, with its namespace if there are `several`."""
    _, namespace, name = key
    return f"{namespace}/{name}" if several else name


class _Waits:
    """The awaited objects and their display, with their namespace if there are `several`."""

    def __init__(self, stage: _Stage, shown: View, several: bool) -> None:
        self._stage = stage
        self._shown = shown
        self._several = several
        self._known: set[_Key] = set()
        self._why: dict[_Key, str] = {}

    def add(self, resource: Resource, document: manifests.Manifest) -> None:
        """Add an object."""
        key = (resource, document.namespace, document.name)
        self._known.add(key)
        self._why[key] = "the operator has not looked at it yet"

    def end(self) -> bool:
        """Wait until all are Ready; False after a signal. Raises _NotReady."""
        clock, stop = self._stage.clock, self._stage.stop
        deadline = clock.now() + _GIVE_UP
        while self._why and (left := deadline - clock.now()) > 0:
            resource = next(iter(self._why))[0]
            for seen in _changes(self._stage.world.client(), resource, stop, left):
                self._look(resource, seen)
                if not any(each[0] == resource for each in self._why):
                    break
            if stop.is_set():
                return False
        if self._why:
            late = sorted((name, why) for (_, _, name), why in self._why.items())
            raise _NotReady("\n".join(f"{name} is not Ready after {_GIVE_UP:.0f} s: {why}" for name, why in late))
        return True

    def _look(self, resource: Resource, seen: Object) -> None:
        namespace, name = seen.metadata.namespace, seen.metadata.name
        key = (resource, namespace, name)
        if key not in self._known:
            return
        sight = see(resource, seen)
        self._shown.show(_title(key, self._several), sight.rows)
        if sight.is_done:
            self._why.pop(key, None)
        elif key in self._why:
            self._why[key] = sight.why
            if sight.blocked:
                raise _NotReady(f"{name} does not get Ready by itself: {sight.blocked}")


def _print_monitors(documents: Sequence[manifests.Manifest], stage: _Stage) -> None:
    """Print how a real Prometheus can use the configuration of the manifest's monitors."""
    _, proxy = stage.world.serve_http()
    for document in documents:
        if document.kind != TIDB_MONITORS.kind:
            continue
        monitor = document.namespace, document.name
        if path := sandbox.write_configuration(stage.world.client(), monitor, stage.directory, proxy):
            lines = (
                f"\nA real Prometheus for TidbMonitor {document.name}, on http://127.0.0.1:9090:",
                f"\n    prometheus --config.file={path} --storage.tsdb.path={stage.directory / 'prometheus'}\n",
                "It must find pods of Kubernetes, which Debian's does not: `make prometheus` builds one, "
                "hack/prometheus/bin/prometheus.",
            )
            stage.console.print(Printable(Text("\n".join(lines))), soft_wrap=True)


def _changes(client: Client, resource: Resource, stop: Stop, seconds: float) -> Iterator[Object]:
    """Every object of a resource, then its changes, for some time."""
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


def _print_next_steps(documents: Sequence[manifests.Manifest], stage: _Stage, page: str) -> None:
    """Print commands that work now on this machine, and the address of the page."""
    api, _ = stage.world.serve_http()
    own = next((document for document in documents if document.kind in _SCALED), None)
    namespace, name = (own.namespace, own.name) if own else ("default", "")
    change = _one_more(own) if own else None
    url = f"{api}{_SCALED[own.kind].path(namespace, name) if own else TIDB_CLUSTERS.path(namespace)}"
    lines = ["", "What to try next, in another terminal:", ""]
    if shutil.which("kubectl"):
        kind = own.kind.lower() if own else TIDB_CLUSTERS.kind.lower()
        lines += [f"    {hints.source(stage.directory)}    # `sandbox_off` undoes it"]
        lines += [f"    kubectl get {kind},pods -n {namespace}"]
        if name and hints.programs():
            lines += [f"    kubectl tidb status {name} -n {namespace}"]
        if change:
            command = f"kubectl patch {kind} {name} -n {namespace} --type=merge -p '{change.patch}'"
            lines += [f"    {command}    # {change.purpose}"]
    elif shutil.which("curl"):
        lines += [f"    curl -s {url}"]
        if change:
            header = "-H 'Content-Type: application/merge-patch+json'"
            lines += [f"    curl -s -X PATCH {header} -d '{change.patch}' {url}    # {change.purpose}"]
    else:
        lines += [f"    open {url} in a browser; with kubectl in PATH, `make run` shows what to type"]
    lines += ["", f"In a browser: {page}"]
    lines += ["", f"The operator's log: {stage.directory}/operator.log", "Ctrl-C ends it; nothing is kept.", ""]
    stage.console.print(Printable(Text("\n".join(lines))), soft_wrap=True)


_SCALED = {TIDB_CLUSTERS.kind: TIDB_CLUSTERS, DM_CLUSTERS.kind: DM_CLUSTERS}


@dataclass(frozen=True, slots=True)
class _Change:
    """A patch to try, and its purpose."""

    patch: str
    purpose: str


def _one_more(document: manifests.Manifest) -> _Change | None:
    """One more replica of the cluster's first component that is easy to scale."""
    spec = document.body.get("spec") or {}
    for component, title in (("tikv", "TiKV"), ("worker", "DM-worker"), ("tidb", "TiDB"), ("tiflash", "TiFlash")):
        if isinstance(part := spec.get(component), dict):
            replicas = int(part.get("replicas") or 0) + 1
            patch = msgspec.json.encode({"spec": {component: {"replicas": replicas}}}).decode()
            return _Change(patch, f"one {title} more")
    return None
