"""`tidb-operator sandbox`: a Kubernetes and TiDB world on loopback, for an operator in another terminal.

`sandbox fault` breaks something in it, and `sandbox heal` mends it.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec
import yaml

from cli import hints
from cli.failures import Failure
from cli.tidb.connection import Kubeconfig
from cli.tidb.ui.command import page_of_sandbox
from controller_manager.shutdown import stopping_on_signals
from kube.client import Client
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS
from ports.clock import Clock, SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop
from rehearsal.world import new_world
from sandbox.fault_requests import PATH, VERBS

if TYPE_CHECKING:
    from sandbox.processes.machine import Machine

_TOGETHER = ("pd-server", "tikv-server", "tidb-server")
_POD = {"$(SHARD)": "0", "$(POD_NAME)": "sandbox", "$(NAMESPACE)": "sandbox"}


def machine_for(binaries: Path | None, clock: Clock, keep: Path | None = None) -> "Machine | None":
    """The machine that runs the programs of a directory; None without one. Raises Failure."""
    if binaries is None:
        return None
    from sandbox.processes.agent_client import Unavailable  # noqa: PLC0415
    from sandbox.processes.keep import Keep  # noqa: PLC0415
    from sandbox.processes.machine import Machine  # noqa: PLC0415  (its DNS server is an extra of this package)

    try:
        kept = Keep(keep) if keep is not None else None
    except Unavailable as error:
        raise Failure(f"--keep: {error}") from None
    try:
        machine = Machine(binaries, clock, keep=kept)
    except Unavailable as error:
        if kept is not None:
            kept.close()
        raise Failure(f"--binaries: {error}") from None
    missing = [each for each in _TOGETHER if each not in machine.programs]
    if 0 < len(missing) < len(_TOGETHER):
        what = f"{binaries} lacks {' and '.join(missing)}, and simulated servers do not understand real ones"
        print(f"{what}: a cluster that has both does not come up", file=sys.stderr, flush=True)
    if "pd-server" in machine.programs and "br" not in machine.programs:
        what = f"{binaries} lacks br, and the simulated one does not understand a real PD"
        print(
            f"{what}: Backups, Restores and CompactBackups fail, and their status says so", file=sys.stderr, flush=True
        )
    return machine


def serve(directory: Path, binaries: Path | None = None, keep: Path | None = None) -> int:
    """Run a sandbox until a signal ends it, and its content with it unless `keep` keeps it. Raises Failure."""
    clock = SystemClock()
    machine = machine_for(binaries, clock, keep)
    world = new_world(clock, SystemRandomness(), machine=machine)
    with stopping_on_signals(stop := Stop()):
        world.start()
        try:
            try:
                kubeconfig = world.write_kubeconfig(directory, hints.programs())
            except OSError as error:
                why = error.strerror or error
                raise Failure(
                    f"{directory}: can't write `kubeconfig` and `env` here: {why}; name another --dir"
                ) from None
            api, proxy = world.serve_http()
            with page_of_sandbox(kubeconfig, clock) as page:
                print(f"API server    {api}")
                print(f"data plane    {proxy}, an HTTP proxy in which the names of PD, TiKV and TiDB resolve")
                print(f"page          {page}")
                if machine is not None:
                    print(f"processes     {', '.join(machine.programs)}; all others are simulated")
                if keep is not None:
                    print(f"kept          {keep}, the objects and the volumes of real processes")
                    if machine is not None and (names := simulated_volumes(world.client(), machine)):
                        print(f"simulated     {', '.join(names)}: their volumes are empty again")
                print(f"\nIn another terminal:\n\n    {hints.source(directory)}    # `sandbox_off` undoes it")
                print(f"    {hints.program()} run\n")
                again = f"the same command continues with {keep}" if keep is not None else "nothing is kept"
                print(f"Ctrl-C ends it; {again}.", flush=True)
                stop.wait(clock)
        finally:
            world.stop()
    return 0


def simulated_volumes(client: Client, machine: "Machine") -> list[str]:
    """The pods, as `namespace/name`, that have a claim and only simulated servers, which keep nothing."""
    return sorted(
        f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in client.list_page(PODS).items
        if _is_simulated(pod.decode(), machine)
    )


def _is_simulated(pod: Json, machine: "Machine") -> bool:
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    programs = [
        machine.program(container["image"], [*(container.get("command") or ()), *(container.get("args") or ())], labels)
        for container in spec["containers"]
    ]
    return not any(programs) and any("persistentVolumeClaim" in volume for volume in spec.get("volumes") or ())


FAULT, HEAL = "fault", "heal"


def change_faults(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Carry out `fault …` or `heal …`; the exit code. Raises Failure, ApiError, TransportError."""
    command, *rest = arguments
    known = "\n".join(f"{f'{name} {verb.takes}':<34} {verb.means}" for name, verb in VERBS.items())
    parser = argparse.ArgumentParser(
        f"tidb-operator sandbox {command}",
        description="Break something in the sandbox; `heal` mends it."
        if command == FAULT
        else "Mend everything that `fault` has broken, or one fault.",
        epilog=known,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--kubeconfig", default="", metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument("fault", nargs="?", default="", help="one of those below; without it, show what is broken")
    parser.add_argument("on", nargs="?", default="", help="the node, pod, cluster or image")
    given = parser.parse_args(rest)
    with closing(Kubeconfig(given.kubeconfig, "", environ, SystemClock())) as server:
        for fault in _ask(server.client, command, given.fault, given.on)["faults"] or ["nothing is broken"]:
            print(fault)
    return 0


def _ask(client: Client, command: str, fault: str, on: str) -> Json:
    """What the sandbox answers. Raises Failure for an API server of another kind."""
    try:
        if command == HEAL:
            query = f"?{urlencode({'fault': f'{fault} {on}'})}" if fault else ""
            answer = client.request("DELETE", f"{PATH}{query}")
        elif fault:
            answer = client.request("POST", PATH, body={"fault": fault, "on": on})
        else:
            answer = client.request("GET", PATH)
    except NotFound as error:
        if "page not found" in error.message or not error.message:
            raise Failure("this API server is no sandbox; source the file `env` that the sandbox wrote") from None
        raise
    found: Json = msgspec.json.decode(answer.body)
    return found


def write_configuration(client: Client, monitor: tuple[str, str], directory: Path, proxy: str) -> Path | None:
    """Write `prometheus.yml` beside the kubeconfig in a directory; return its path, or None without a configuration.

    It finds pods through the kubeconfig's API server, and scrapes them through the proxy. Files mounted into the pod
    are missing. Raises ApiError, TransportError.
    """
    namespace, name = monitor
    found = client.find(CONFIG_MAPS, f"{name}-monitor", namespace)
    if found is None:
        return None
    text = found.decode()["data"]["prometheus.yml"]
    for placeholder, value in _POD.items():
        text = text.replace(placeholder, value)
    tree = yaml.safe_load(text)
    tree.pop("rule_files", None)
    for job in tree.get("scrape_configs") or ():
        job["proxy_url"] = proxy
        for discovery in job.get("kubernetes_sd_configs") or ():
            discovery.pop("api_server", None)
            discovery["kubeconfig_file"] = str(directory / "kubeconfig")
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    return path
