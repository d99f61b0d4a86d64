"""Does a question come from the pod that it names? (objects.md 10.3)

A pod asks while its volume is empty, and a cluster is begun when all of its pods have asked. Anyone in the network can
ask in the name of a pod, so a question counts as evidence only when the pod exists and the request came from its
address. To join takes no such proof: the answer names members that PD shows to anyone who asks it.

Where the network hides the addresses of pods (a proxy beside each pod, masquerading between nodes), the certificate of
`spec.tlsCluster.enableDiscoveryMTLS` takes the place of the address. Without it no cluster is begun there until the
user sets DISCOVERY_SKIP_ADDRESS_CHECK in `spec.discovery.env`: to wait is better than to begin a second cluster.
"""

from collections.abc import Mapping
from typing import Protocol

from kube.objects import Json, Object

SKIP_ADDRESS_CHECK = "DISCOVERY_SKIP_ADDRESS_CHECK"
"""The environment variable with which the user says that the network hides addresses, `true` or nothing."""

DISCOVERY_MTLS = "DISCOVERY_MTLS_ENABLED"
"""Set by the operator where clients must show a certificate of the cluster."""


class Askers(Protocol):
    """Reads the pods that ask."""

    def doubt(self, namespace: str, workload: str, pod: str, source: str) -> str:
        """Why a question that came from the address `source` is not that of a pod of a StatefulSet; empty when it is.

        Raises ApiError, TransportError.
        """


def compares_addresses(environ: Mapping[str, str]) -> bool:
    """Whether a question must come from the address of its pod."""
    return "true" not in (environ.get(SKIP_ADDRESS_CHECK), environ.get(DISCOVERY_MTLS))


def doubt_about(pod: Object | None, name: str, workload: str, source: str, *, compares: bool) -> str:
    """See `Askers.doubt`; `pod` is the pod of this name as the API server has it now, and `compares`, addresses."""
    if pod is None:
        return f"pod {name} does not exist"
    if not any((each.kind, each.name) == ("StatefulSet", workload) for each in pod.metadata.owner_references):
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
    """Whether a probe has found the pod ready. Without a probe, a pod is Ready as soon as its containers run."""
    containers = (tree.get("spec") or {}).get("containers") or ()
    conditions = (tree.get("status") or {}).get("conditions") or ()
    is_ready = any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)
    return is_ready and any(each.get("readinessProbe") for each in containers)


def _addresses(tree: Json) -> list[str]:
    status = tree.get("status") or {}
    all_of_it = [status.get("podIP"), *(each.get("ip") for each in status.get("podIPs") or ())]
    return list(dict.fromkeys(address for address in all_of_it if address))
