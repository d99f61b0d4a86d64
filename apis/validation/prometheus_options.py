"""Options of Prometheus with which it would not start, or no pod would become Ready (other-resources.md 3.6).

The operator passes options of its own. Prometheus refuses an option that is given twice, even with the same value, and
v1.6 then leaves a pod that restarts for ever. The operator does not judge options that it does not know: they depend on
the version.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from apis.monitors import TidbMonitorSpec
from apis.problem import Problem

_FIELD = "spec.prometheus.config.commandOptions"
_PORT = "9090"
_LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
_REPEATABLE = frozenset(
    {"enable-feature", "web.listen-address", "web.remote-write-receiver.accepted-protobuf-messages"}
)
_ENDS = frozenset({"help", "help-long", "help-man", "version", "h"})
_NO_AGENT = "can't be used beside the options about storage that the operator sets; remove it"
_TWICE = "Prometheus refuses an option that is given twice"

_GENERATED: Mapping[str, str] = {
    "web.enable-admin-api": "remove it",
    "web.enable-lifecycle": "remove it",
    "config.file": "remove it, or set spec.prometheus.config.configMapRef",
    "storage.tsdb.path": "remove it",
    "storage.tsdb.retention.time": "set spec.prometheus.retentionTime",
}
"""The options that the operator always sets, each with the way out."""


def check(spec: TidbMonitorSpec) -> Iterator[Problem]:
    """What is wrong with `commandOptions`, unless a command of the user's replaces the options."""
    config = spec.prometheus.config
    patches = [container for container in spec.additional_containers if container.get("name") == "prometheus"]
    if config is None or any(patch.get("command") for patch in patches):
        return
    values = defaultdict[str, list[str]](list)
    generated = _generated(spec)
    for index, option in enumerate(config.command_options):
        flag = ""
        for word in option.split():
            if not word.startswith("-"):
                # the value of the flag before it
                values[flag][-1:] = [word]
                continue
            flag, _, value = word.lstrip("-").partition("=")
            if message := _misfit(flag, values, generated):
                yield Problem(f"{_FIELD}[{index}]", option, message)
            flag = flag.removeprefix("no-")
            values[flag].append(value)
    if not any(patch.get("readinessProbe") for patch in patches):
        yield from _check_address(values)


def _generated(spec: TidbMonitorSpec) -> Mapping[str, str]:
    found = dict(_GENERATED)
    if spec.prometheus.log_level:
        found["log.level"] = "remove it, or spec.prometheus.logLevel"
    if spec.prometheus.disable_compaction or spec.thanos is not None:
        found |= dict.fromkeys(("storage.tsdb.max-block-duration", "storage.tsdb.min-block-duration"), "remove it")
    return found


def _misfit(written: str, earlier: Mapping[str, Sequence[str]], generated: Mapping[str, str]) -> str:
    """Why a flag cannot be used beside the earlier ones; empty if it can."""
    flag = written.removeprefix("no-")
    if flag in generated:
        return f"sets --{flag}, as the operator does, and {_TWICE}; {generated[flag]}"
    if flag in earlier and flag not in _REPEATABLE:
        return f"sets --{flag} again, and {_TWICE}; remove one of them"
    if flag in _ENDS:
        return "has Prometheus print a text and end; remove it"
    return _NO_AGENT if written == "agent" else ""


def _check_address(flags: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """The readiness probe, the Services and Grafana reach Prometheus at the port 9090 of the pod, below `/`."""
    addresses = flags.get("web.listen-address", ())
    if addresses and not any(_is_reached(address) for address in addresses):
        message = f"is not the address :{_PORT}, where the readiness probe and the Service reach Prometheus; remove it"
        yield Problem(_FIELD, f"--web.listen-address={addresses[-1]}", message)
    prefix, url = (flags.get(each, ("",))[-1] for each in ("web.route-prefix", "web.external-url"))
    # Prometheus takes an empty prefix for none
    path = prefix or urlsplit(url).path
    if path.strip("/"):
        message = (
            "moves Prometheus away from /, but the readiness probe asks /-/ready; add --web.route-prefix=/ and no other"
        )
        yield Problem(_FIELD, path, message)


def _is_reached(address: str) -> bool:
    """Whether others reach Prometheus there; a variable of the container may hold anything."""
    host, _, port = address.rpartition(":")
    return "$" in address or (port == _PORT and host not in _LOCAL)
