"""Refuse settings that move the ports and addresses which Services, probes and the operator use (R25).

With them, a running component would count as unhealthy forever. Where a flag of the start script wins, the setting has
no effect, and `member.fields.settings` names it. Values that equal the operator's own are accepted, because
configurations of other deployments have them.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from apis.component_specs import TiDBSpec
from apis.components import component_type
from apis.config import find
from apis.listen_settings import Accepted
from apis.problem import Problem
from apis.toml import Table


def check_config(component: str, config: Table, field: str) -> Iterator[Problem]:
    """Problems of a configuration file, but for settings that a flag of the start script overrides in any case."""
    row = component_type(component)
    flagged = {flag.path for flag in row.flags.values() if not flag.sometimes}
    for path, accepted_with in row.listens.items() if config else ():
        for written, value in find(config, path) if path not in flagged else ():
            accepted = accepted_with(row.ports)
            if value is not None and not _is_accepted(value, accepted):
                yield Problem(f"{field}.{written}", value, _message(component, accepted))


def check_arguments(tidb: TiDBSpec, field: str) -> Iterator[Problem]:
    """Problems of additional arguments: a later flag overrides the flag of the start script."""
    settings = _settings("tidb")
    for index, flag, value in _flags(tidb.arguments):
        path = _FLAGS.get(flag)
        if path is None:
            continue
        accepted = tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in settings[path])
        if value not in accepted:
            yield Problem(f"{field}.arguments[{index}]", tidb.arguments[index], _message("tidb", settings[path]))


_FLAGS: Mapping[str, str] = {
    "P": "port",
    "host": "host",
    "advertise-address": "advertise-address",
    "report-status": "status.report-status",
    "status-host": "status.status-host",
    "status": "status.status-port",
}
"""Flags of tidb-server by the setting that they override."""


def _settings(component: str) -> Mapping[str, Accepted]:
    """The paths of such settings in a component's configuration file, with the values that change nothing."""
    row = component_type(component)
    return {path: accepted(row.ports) for path, accepted in row.listens.items()}


def _is_accepted(value: object, accepted: Accepted) -> bool:
    return any(type(value) is type(each) and value == each for each in accepted)


def _flags(arguments: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Index, flag and value of each word that is a flag; white space separates words, as in the start script."""
    words = [(index, word) for index, argument in enumerate(arguments) for word in argument.split()]
    for (index, word), (_, after) in pairwise([*words, (len(arguments), "")]):
        if not word.startswith("-"):
            continue
        flag, given, value = word.lstrip("-").partition("=")
        separate = "true" if flag == "report-status" else after
        yield index, flag, value if given else separate


def _message(component: str, accepted: Accepted) -> str:
    title = component_type(component).title
    first = accepted[0]
    if first == "":
        return f"must be absent, because each pod of {title} advertises its own name; remove it"
    shown = str(first).lower() if isinstance(first, bool) else first
    return f"must be {shown}, where Services, probes and the operator reach {title}; remove it"
