"""Settings of configurations that have no effect, since flags or the operator override them. A pure function of a spec.

A flag of a start script overrides what the file says (`apis.flag_settings`), and the operator writes some settings of
the file itself: both are found by comparing what the user has written with what the pods get.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apis import config, config_schema, toml
from apis.accessor import Component, workloads
from apis.cluster import Cluster
from apis.component_specs import TiFlashSpec
from apis.problem import InvalidField, Problem, shown
from apis.shared import WorkloadSpec
from apis.toml import Table
from kube.objects import Json
from member.components import workload
from member.objects.config_map import STARTUP_SCRIPT, Content
from member.tiflash.desired import PROXY_TEMPLATE, SERVER_TEMPLATE

_ASSIGNED = re.compile(r"([A-Z_]+)=(?!.*(?:\$\(|%|:-))(.+)")
"""Assignments, except those whose value depends on a command or on the pod's environment."""
_CONDITION = re.compile(r'if \[ (?:-n )?"\$\{?([A-Z_]+)[^"]*" (= true )?\]; then')
_VARIABLE = re.compile(r"\$\{?([A-Z_]+)\}?")


@dataclass(frozen=True, slots=True)
class _File:
    """A configuration file: the user's content below `field`, and the content that the pods get."""

    field: str
    written: Table
    made: Table


def overridden(tc: Cluster) -> list[Problem]:
    """The user's settings without effect in a defaulted cluster; each message has the way out."""
    return [problem for own in workloads(tc) if _is_configured(own.workload) for problem in _of_component(own)]


def _is_configured(spec: WorkloadSpec) -> bool:
    return bool(spec.server_config) or (isinstance(spec, TiFlashSpec) and spec.config is not None)


def _of_component(own: Component) -> Iterator[Problem]:
    try:
        content = workload(own.name).content(own.tc)
        files, flags = list(_files(own, content)), server_flags(own, content)
    except InvalidField:
        return  # `validate` reports it
    taken = set[str]()
    for flag, setting in own.type.flags.items():
        for path, value in config.find(files[0].written, setting.path) if setting.path else ():
            field = f"{files[0].field}.{path}"
            if flag in flags:
                taken.add(field)
            if why := _overriding(own, flag, value, flags.get(flag)):
                yield Problem(field, value, f"has no effect, because {why}; {setting.instead}")
    for file in files:
        for field, value, made in _differences(file.field, file.written, file.made):
            if field not in taken:
                what = "leaves it out" if made is None else f"writes {shown(made)}"
                yield Problem(field, value, f"has no effect, because the operator {what}; remove it")


def _overriding(own: Component, flag: str, value: object, given: str | None) -> str:
    """Why a setting has no effect, given the value of its flag; empty if it has one."""
    setting = own.type.flags[flag]
    if setting.founding:
        return f"Discovery says whom a new {own.type.title} joins, and with it the next one does not start"
    if given is None or _same(own, setting.path, value, given):
        return ""
    return f"the start script passes --{flag}={given}"


def _same(own: Component, path: str, value: object, given: str) -> bool:
    """True if a setting equals the flag's value, regardless of scheme and notation of addresses."""
    accepted = own.type.listens.get(path)
    if accepted is not None and value in accepted(own.type.ports):
        return True
    items = value if isinstance(value, list) else [value]
    text = ",".join(str(item).lower() if isinstance(item, bool) else str(item) for item in items)
    return _bare(text) == _bare(given)


def _bare(addresses: str) -> str:
    return addresses.replace("http://", "").replace("https://", "")


def server_flags(own: Component, content: Content) -> Mapping[str, str]:
    """The flags of a pod's server; `<pod>` stands for the pod's name."""
    template = workload(own.name).stateful_set(own.tc, "")["spec"]["template"]["spec"]
    container: Json = next(each for each in template["containers"] if each["name"] == own.name)
    script = content.data.get(STARTUP_SCRIPT) or "\n".join([*container["command"], *container.get("args", ())])
    meta = own.tc.metadata
    known = {"POD": "<pod>", "POD_NAME": "<pod>", "CLUSTER": meta.name, "NAMESPACE": meta.namespace}
    return given_flags(
        script, known | {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}
    )


def _files(own: Component, content: Content) -> Iterator[_File]:
    """The configuration files that the pods get. Raises InvalidField."""
    schema, spec = own.type.config, own.spec
    written = config.tables(own.config, schema, own.config_field)
    key = SERVER_TEMPLATE if isinstance(spec, TiFlashSpec) else schema.file
    yield _File(own.config_field, written, toml.loads(content.data[key]) if key in content.data else written)
    if isinstance(spec, TiFlashSpec) and spec.config and spec.config.proxy:
        field = f"{own.field}.config.proxy"
        proxy = config.tables(spec.config.proxy, config_schema.TIFLASH_PROXY, field)
        yield _File(field, proxy, toml.loads(content.data[PROXY_TEMPLATE]))


def _differences(field: str, written: Table, made: Table) -> Iterator[tuple[str, object, object]]:
    """The field, the value and the pods' value for each setting that the pods do not get."""
    for key, value in written.items():
        now = made.get(key)
        if isinstance(value, dict):
            yield from _differences(f"{field}.{key}", value, now if isinstance(now, dict) else {})
        elif now != value:
            yield f"{field}.{key}", value, now


def given_flags(script: str, variables: Mapping[str, str]) -> dict[str, str]:
    """The flags, without dashes, with their values; unknown variables are not replaced.

    `variables` are the pod's. Flags in a conditional part count if known variables decide the condition.
    """
    known, found, skipped = dict(variables), dict[str, str](), False
    for line in _lines(script):
        if line.startswith("if "):
            skipped = not _holds(line, known)
        elif line == "fi":
            skipped = False
        elif assigned := _ASSIGNED.fullmatch(line):
            known[assigned[1]] = _filled_in(shlex.split(assigned[2])[0], known)
        elif line.startswith(("set -- ", "exec /")) and not skipped:
            found |= {flag: _filled_in(value, known) for flag, value in _flags(shlex.split(line)[2:])}
    return found


def _holds(line: str, known: Mapping[str, str]) -> bool:
    """True if the line's condition is that a variable has a value, or the value `true`, and it holds."""
    condition = _CONDITION.fullmatch(line)
    if condition is None:
        return False
    value = known.get(condition[1], "")
    return value == "true" if condition[2] else bool(value)


def _lines(script: str) -> Iterator[str]:
    yield from (line.strip() for line in script.replace("\\\n", " ").splitlines())


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        flag, given, value = word.lstrip("-").partition("=")
        if word.startswith("-") and flag:
            yield flag, value if given else after


def _filled_in(text: str, known: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), text)
