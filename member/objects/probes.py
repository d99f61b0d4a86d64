"""Probes that the operator completes from a few fields of the spec (objects.md 4)."""

from apis.shared import Probe
from kube.objects import Json

_INITIAL_DELAY = 10
"""Seconds before the first readiness probe, unless the spec sets them."""


def readiness(handler: Json, probe: Probe | None) -> Json:
    """A readiness probe with the given handler; with `probe` None, the defaults apply."""
    delay = probe.initial_delay_seconds if probe else None
    return handler | _timing(_INITIAL_DELAY if delay is None else delay, probe)


def as_given(handler: Json, probe: Probe) -> Json:
    """A probe with the given handler and only the times that are in the spec."""
    return handler | _timing(probe.initial_delay_seconds, probe)


def tcp(port: int) -> Json:
    """A handler that succeeds if the port accepts a connection."""
    return {"tcpSocket": {"port": port}}


def command(*words: str) -> Json:
    """A handler that succeeds if the command in the container succeeds."""
    return {"exec": {"command": list(words)}}


def _timing(delay: int | None, probe: Probe | None) -> Json:
    times = {"initialDelaySeconds": delay, "periodSeconds": probe.period_seconds if probe else None}
    return {name: seconds for name, seconds in times.items() if seconds}
