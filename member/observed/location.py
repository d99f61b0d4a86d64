"""The location of a node, in the labels by which PD spreads replicas (lifecycle.md 7.9). Pure."""

from collections.abc import Mapping, Sequence

ZONE = "zone"

_WELL_KNOWN: Mapping[str, Sequence[str]] = {
    "region": ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ZONE: ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    "host": ("kubernetes.io/hostname",),
}
"""The labels that Kubernetes sets on nodes, by the short names that are usual in PD."""


def location(node: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The values of `keys` among the labels of a node, without keys that the node lacks."""
    found = {key: next((node[name] for name in (key, *_WELL_KNOWN.get(key, ())) if node.get(name)), "") for key in keys}
    return {key: value for key, value in found.items() if value}


def with_zone(node: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The location of a server that prefers replicas in its own zone; empty if `keys` contain no zone."""
    zone = next((key for key in (ZONE, *_WELL_KNOWN[ZONE]) if key in keys), None)
    found = location(node, keys)
    if zone is None or zone not in found:
        return {}
    return found | {ZONE: found[zone]}
