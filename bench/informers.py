"""Filling a cache of 10,000 pods, and one of 2,000 TidbClusters, beside client-go and the `kubernetes` package.

Every reading is a process of its own, the readers take turns, and figures are medians of five rounds after one that is
discarded. The server is etcd and kube-apiserver alone. Pages and streams, as each reader has them by default:

- ours: LIST at resourceVersion 0 with limit 500, which the watch cache answers in one piece; JSON, gzip; no WatchList
- client-go typed: WatchList, protobuf; client-go dynamic: WatchList, JSON
- `kubernetes`: one typed LIST at resourceVersion 0, JSON; raw: the same LIST, identity, thrown away
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TypeAlias

from bench import client_go, workload
from bench.figures import note, show
from kube.client import Client
from kube.config import load_kubeconfig
from kube.http_transport import HttpTransport
from ports.clock import SystemClock
from tests.controlplane.processes import ControlPlane, require_or_reason

PODS = 10_000
CLUSTERS = 2_000
_CLUSTERS = "pingcap.com/v1alpha1/tidbclusters"

ROUNDS = 5
_PATIENCE = 300.0
Reader: TypeAlias = list[str]
"""A command whose last line is JSON with numbers."""


def main() -> int:
    """Run the suite. 1 if no control plane was built."""
    if reason := require_or_reason():
        note(reason)
        return 1
    peers = _build_peers()
    with tempfile.TemporaryDirectory() as directory:
        control_plane = ControlPlane(Path(directory))
        try:
            control_plane.start_api()
            kubeconfig = _filled(control_plane)
            _pods(kubeconfig, peers)
            _custom_resources(kubeconfig, peers)
        finally:
            control_plane.stop()
    return 0


def _pods(kubeconfig: str, peers: Path | None) -> None:
    readers = {
        "ours": _python("ours", kubeconfig, "pods"),
        "kubernetes": _python("kubernetes", kubeconfig, "pods"),
        "raw_download": _python("raw", kubeconfig, "pods"),
    }
    if peers:
        readers["client_go_typed"] = [str(peers), "-kubeconfig", kubeconfig, "-mode", "typed"]
        readers["client_go_dynamic"] = [str(peers), "-kubeconfig", kubeconfig, "-mode", "dynamic"]
    _compare(f"pods_{PODS}", readers, PODS)


def _custom_resources(kubeconfig: str, peers: Path | None) -> None:
    readers = {
        "ours": _python("ours", kubeconfig, "tidbclusters"),
        "raw_download": _python("raw", kubeconfig, "tidbclusters"),
    }
    if peers:
        dynamic = ["-kubeconfig", kubeconfig, "-mode", "dynamic", "-resource", _CLUSTERS]
        readers["client_go_dynamic"] = [str(peers), *dynamic]
    name = f"tidbclusters_{CLUSTERS}"
    peer_seconds = {peer: theirs["seconds"] for peer, theirs in _compare(name, readers, CLUSTERS).items()}
    if peers:
        # the lower bound for any client, whatever it does with the data
        download, theirs = peer_seconds["raw_download"], round(peer_seconds["client_go_dynamic"], 3)
        show(f"{name}_raw_download_seconds_vs_client_go_dynamic", download, theirs, "s", "client_go_dynamic, this run")


def medians(readers: Mapping[str, Reader], rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """The medians of each reader's numbers. Readers alternate, so that a slow minute of the machine affects all.

    A first round warms the server and is discarded.
    """
    results: dict[str, list[dict[str, float]]] = {name: [] for name in readers}
    for number in range(rounds + 1):
        for name, command in readers.items():
            result = _run(command)
            note(f"round {number or 'discarded'}: {name} {json.dumps(result)}")
            if number:
                results[name].append(result)
    return {name: {key: median(run[key] for run in runs) for key in runs[0]} for name, runs in results.items()}


def _run(command: Reader) -> dict[str, float]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=_PATIENCE)  # noqa: S603
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def _compare(name: str, readers: dict[str, Reader], objects: int) -> dict[str, dict[str, float]]:
    """Measure, show the figures, and return the peers'."""
    results = medians(readers)
    ours = results.pop("ours")
    if ours["objects"] != objects:
        raise RuntimeError(f"{name}: {ours['objects']:g} objects in the cache instead of {objects}")
    for peer, theirs in results.items():
        for figure, unit in (("seconds", "s"), ("cpu_seconds", "s"), ("peak_mb", "MB")):
            show(f"{name}_{figure}_vs_{peer}", ours[figure], round(theirs[figure], 3), unit, f"{peer}, this run")
    show(f"{name}_lease_thread_longest_stop_median", ours["longest_stop"] * 1000, 250, "ms", "aim")
    return results


def _python(kind: str, kubeconfig: str, plural: str) -> Reader:
    return [sys.executable, "-m", "bench.reader", kind, kubeconfig, plural]


def _build_peers() -> Path | None:
    """The client-go program; None if it cannot be built."""
    note("building bench/peers; the first time takes minutes")
    try:
        return client_go.build()
    except client_go.ClientGoMissing as missing:
        note(f"{missing}: no figures of client-go")
        return None


def _filled(control_plane: ControlPlane) -> str:
    """Fill the API server; return the path of a kubeconfig."""
    kubeconfig = str(control_plane.kubeconfig())
    clock = SystemClock()
    transport = HttpTransport(load_kubeconfig(kubeconfig, clock), {}, clock)
    client = Client(transport)
    note(f"creating {PODS} pods and {CLUSTERS} TidbClusters")
    workload.namespaces(client)
    workload.pods(client, PODS)
    workload.clusters(client, CLUSTERS)
    transport.close()
    return kubeconfig
