"""Authentication of questions: does a question come from the pod that it names? (objects.md 10.3)

A pod asks while its volume is empty, and a cluster begins once all its pods have asked. Any client in the network can
ask in a pod's name, so a question counts as evidence only if the pod exists and the request came from its address.
Joining needs no such proof, because the answer contains only members that PD shows to any client.

If the network hides the addresses of pods (sidecar proxies, masquerading between nodes), the client certificate of
`spec.tlsCluster.enableDiscoveryMTLS` replaces the address. Without it no cluster begins until the user sets
DISCOVERY_SKIP_ADDRESS_CHECK in `spec.discovery.env`: waiting is better than beginning a second cluster.
"""

from collections.abc import Mapping
from typing import Protocol

from kube.objects import Json, Object

SKIP_ADDRESS_CHECK = "DISCOVERY_SKIP_ADDRESS_CHECK"
"""The environment variable by which the user declares that the network hides addresses: `true`, or unset."""

DISCOVERY_MTLS = "DISCOVERY_MTLS_ENABLED"
"""Set by the operator if clients must present a certificate of the cluster."""


class Askers(Protocol):
    """Checks the pods that ask."""

    def doubt(self, namespace: str, workload: str, pod: str, source: str) -> str:
        """Why a question from the address `source` is not from this pod of the StatefulSet; empty if it is.

        Raises ApiError, TransportError.
        """


def compares_addresses(environ: Mapping[str, str]) -> bool:
    """True if a question must come from the address of its pod."""
    return "true" not in (environ.get(SKIP_ADDRESS_CHECK), environ.get(DISCOVERY_MTLS))


def doubt_about(pod: Object | None, name: str, workload: str, source: str, *, compares: bool) -> str:
    """The doubt about a question (see `Askers.doubt`). `pod` is the current object, or None; `compares` includes the
    address.
    """
    if pod is None:
        return f"pod {name} does not exist"
    if not any(
        (reference.kind, reference.name) == ("StatefulSet", workload) for reference in pod.metadata.owner_references
    ):
        return f"pod {name} does not belong to StatefulSet {workload}"
    if pod.metadata.deletion_timestamp:
        return f"pod {name} is being deleted"
    tree = pod.decode()
    if _serves(tree):
        return f"pod {name} is Ready, so its volume is not empty"
    return _foreign(name, source, _addresses(tree)) if compares else ""


def _foreign(name: str, source: str, addresses: list[str]) -> str:
    if source in addresses:
        return ""
    if not addresses:
        return f"the API server does not know the address of pod {name} yet"
    return (
        f"the question of pod {name} came from {source or 'an unknown address'}, not from {' or '.join(addresses)}; "
        f"where the network hides addresses, set spec.tlsCluster.enableDiscoveryMTLS, or {SKIP_ADDRESS_CHECK}=true in "
        "spec.discovery.env"
    )


def _serves(tree: Json) -> bool:
    """True if a readiness probe has succeeded. Without a probe, a pod is Ready as soon as its containers run."""
    containers = (tree.get("spec") or {}).get("containers") or ()
    conditions = (tree.get("status") or {}).get("conditions") or ()
    is_ready = any((condition.get("type"), condition.get("status")) == ("Ready", "True") for condition in conditions)
    return is_ready and any(container.get("readinessProbe") for container in containers)


def _addresses(tree: Json) -> list[str]:
    status = tree.get("status") or {}
    all_of_it = [status.get("podIP"), *(each.get("ip") for each in status.get("podIPs") or ())]
    return list(dict.fromkeys(address for address in all_of_it if address))
