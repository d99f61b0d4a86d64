"""Faults of a running sandbox by name, which `tidb-operator sandbox fault` and `heal` put in and take out over HTTP.

- GET lists the faults that there are, and those that are in.
- POST `{"fault": "node-lost", "on": "node-1"}` puts one in.
- DELETE takes all out, or with `?fault=node-lost+node-1` that one.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import msgspec

from kube.client import Client
from kube.objects import Json
from kube.resources import NODES, PODS, Resource
from ports.structs import decoder
from ports.transport import Request, Response
from sandbox.apiserver.answers import json_answer, refusal_answer
from sandbox.apiserver.refusals import Refusal, bad_request, method_not_allowed, not_found
from sandbox.faults import Heal, WorldFaults

PATH = "/sandbox/faults"

_NODE, _POD, _CLUSTER, _IMAGE, _SECONDS = "NODE", "[NAMESPACE/]POD", "[NAMESPACE/]CLUSTER", "IMAGE", "SECONDS"
_NAMED: Mapping[str, Resource] = {_NODE: NODES, _POD: PODS}


@dataclass(frozen=True, slots=True)
class Verb:
    """One fault: what it takes, what it does, and how it is put in."""

    takes: str
    means: str
    put_in: Callable[[WorldFaults, str], Heal]


VERBS: Mapping[str, Verb] = {
    "node-lost": Verb(_NODE, "the machine stops with all that it runs", WorldFaults.node_gone),
    "node-cut-off": Verb(_NODE, "the machine runs, and Kubernetes does not reach it", WorldFaults.node_cut_off),
    "zone-lost": Verb(_POD, "all machines of the pod's zone stop", WorldFaults.zone_gone),
    "pod-crash-loop": Verb(_POD, "its server ends at each start", WorldFaults.pod_crash_loop),
    "pod-hang": Verb(_POD, "its server answers no client", WorldFaults.pod_hang),
    "pod-unready": Verb(_POD, "its readiness probe fails", WorldFaults.pod_unready),
    "pod-disk-full": Verb(_POD, "its volumes are full", WorldFaults.pod_disk_full),
    "image-missing": Verb(_IMAGE, "no registry has it", WorldFaults.image_missing),
    "pd-no-leader": Verb(_CLUSTER, "PD has no leader", WorldFaults.pd_no_leader),
    "network-slow": Verb(
        _SECONDS,
        "the operator waits so long for each answer of PD, TiKV and TiDB",
        lambda faults, seconds: faults.network_slow(float(seconds)),
    ),
    "network-cut": Verb(_POD, "the operator does not reach it", lambda faults, pod: faults.network_cut(pod)),
    "webhook": Verb("NAME", "admission changes or refuses writes", WorldFaults.webhook),
}
"""By name."""


class FaultRequests:
    """Puts faults into a world and takes them out, for the threads of its HTTP server."""

    def __init__(self, faults: WorldFaults, client: Client) -> None:
        self._faults = faults
        self._client = client
        self._lock = threading.Lock()
        self._active: dict[str, Heal] = {}

    def answer(self, request: Request) -> Response:
        """Answer a request for PATH."""
        try:
            with self._lock:
                return json_answer(self._answer(request))
        except Refusal as refusal:
            return refusal_answer(refusal)

    def _answer(self, request: Request) -> Json:
        match request.method:
            case "GET":
                pass
            case "POST":
                self._put_in(request)
            case "DELETE":
                self._take_out(parse_qs(urlsplit(request.url).query).get("fault", []))
            case _:
                raise method_not_allowed()
        known = {name: {"takes": verb.takes, "means": verb.means} for name, verb in VERBS.items()}
        return {"faults": list(self._active), "known": known}

    def _put_in(self, request: Request) -> None:
        try:
            asked = decoder(_Asked).decode(request.body or b"")
        except msgspec.DecodeError as error:
            raise bad_request(f"not a fault: {error}") from None
        verb = VERBS.get(asked.fault)
        if verb is None:
            raise bad_request(f"no fault {asked.fault}; there are {', '.join(VERBS)}")
        target = self._target(verb, asked.on)
        name = f"{asked.fault} {target}"
        if name in self._active:
            return
        try:
            self._active[name] = verb.put_in(self._faults, target)
        except (LookupError, ValueError) as error:
            raise bad_request(f"{name}: {error.args[0] if error.args else error}") from None

    def _target(self, verb: Verb, on: str) -> str:
        """What the fault is about, by its whole name; a node or a pod exists. Raises Refusal."""
        if not on:
            raise bad_request(f"the fault takes {verb.takes}")
        target = _whole(verb, on)
        if resource := _NAMED.get(verb.takes):
            namespace, _, name = target.rpartition("/")
            if self._client.find(resource, name, namespace) is None:
                raise not_found(resource, name)
        return target

    def _take_out(self, asked: Sequence[str]) -> None:
        split = (each.partition(" ") for each in asked)
        names = [f"{fault} {_whole(VERBS[fault], on)}" if fault in VERBS else fault for fault, _, on in split]
        if unknown := next((each for each in names if each not in self._active), None):
            raise bad_request(f"no fault {unknown} is in; there are {', '.join(self._active) or 'none'}")
        for name in names or list(self._active):
            self._active.pop(name)()


def _whole(verb: Verb, on: str) -> str:
    """What a fault is about, with its namespace if it is in one."""
    return f"default/{on}" if verb.takes in (_POD, _CLUSTER) and "/" not in on else on


class _Asked(msgspec.Struct):
    fault: str
    on: str = ""
