"""The addresses pods advertise, as their start scripts make them (objects.md 7.4, 7.6)."""

import re

from sandbox.dataplane.processes import Launch

_DOMAIN = re.compile(
    r"^SUFFIX=svc\.(\S+)$|(?:SERVICE_NAME\}?|-peer)\.[^.\s]+\.svc\.([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)", re.MULTILINE
)
"""Where a script says under which domain its pod is known: ours in a setting, those of v1.6 in the name itself."""
_LOOKS_UP_ITS_NAME = re.compile(r"^[^#\n]*\b(?:nslookup|dig|getent)\b", re.MULTILINE)


def domain(launch: Launch) -> str:
    """`.cluster.local` when the start script names the cluster's domain, else empty."""
    found = next(filter(None, map(_DOMAIN.search, scripts(launch))), None)
    return f".{found[1] or found[2]}" if found else ""


def waits_for_dns(launch: Launch) -> bool:
    """Whether the start script ends the pod when its own name does not resolve in time."""
    return any(_LOOKS_UP_ITS_NAME.search(text) for text in scripts(launch))


def peer_host(launch: Launch, service: str) -> str:
    """The pod's name under its peer service."""
    named = launch.env.get(service) or f"{launch.pod.rpartition('-')[0]}-peer"
    return f"{launch.pod}.{named}.{launch.namespace}.svc{domain(launch)}"


def goes_by_host(launch: Launch) -> bool:
    """Whether a PD member is named like its host, as the start script of a cluster across several Kubernetes does."""
    return bool(domain(launch)) or any('MEMBER="$DOMAIN"' in text for text in scripts(launch))


def speaks_tls(launch: Launch) -> bool:
    """Whether the start script uses https."""
    return any("https://" in text for text in scripts(launch))


def scripts(launch: Launch) -> list[str]:
    """The texts of the start scripts."""
    return [text for name, text in sorted(launch.files.items()) if name.endswith(".sh")]
