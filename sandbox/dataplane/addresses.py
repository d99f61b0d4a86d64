"""The addresses pods advertise, as their start scripts make them (objects.md 7.4, 7.6)."""

import re

from sandbox.dataplane.processes import Launch

_DOMAIN = re.compile(r"\.svc\.([a-z0-9][a-z0-9.-]*[a-z0-9])")


def domain(launch: Launch) -> str:
    """`.cluster.local` when the start script names the cluster's domain, else empty."""
    for name in sorted(launch.files):
        found = _DOMAIN.search(launch.files[name]) if name.endswith(".sh") else None
        if found is not None:
            return f".{found.group(1)}"
    return ""


def peer_host(launch: Launch, service: str) -> str:
    """The pod's name under its peer service."""
    named = launch.env.get(service) or f"{launch.pod.rpartition('-')[0]}-peer"
    return f"{launch.pod}.{named}.{launch.namespace}.svc{domain(launch)}"


def goes_by_host(launch: Launch) -> bool:
    """Whether a PD member is named like its host, as the start script of a cluster across several Kubernetes does."""
    scripts = [text for name, text in launch.files.items() if name.endswith(".sh")]
    return bool(domain(launch)) or any('MEMBER="$DOMAIN"' in text for text in scripts)


def speaks_tls(launch: Launch) -> bool:
    """Whether the start script uses https."""
    return any("https://" in text for name, text in launch.files.items() if name.endswith(".sh"))
