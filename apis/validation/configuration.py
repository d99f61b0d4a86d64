"""Configurations: readable, of the form the operator needs, TiFlash's paths (defaults-and-validation.md 3.3, 7)."""

from collections.abc import Iterator

from apis import config_schema
from apis.accessor import Component
from apis.component_specs import TiFlashSpec
from apis.config import get, tables
from apis.config_schema import ConfigSchema
from apis.problem import InvalidField, Problem
from apis.shared import Config, WorkloadSpec
from apis.toml import Table
from apis.validation import listening

_PRINTED = ("flash.flash_cluster.log", "logger.log", "logger.errorlog")
"""TiFlash's log files that sidecars print."""
_TIFLASH_LOGS = (*_PRINTED, "flash.proxy.log-file")


def check(component: Component) -> Iterator[Problem]:
    """Check that the text is TOML, that the operator's tables are tables, and that TiFlash's keys are valid."""
    for schema, field, written in _configurations(component):
        try:
            read = tables(written, schema, field)
        except InvalidField as error:
            yield error.problem
            continue
        yield from _check_tables(read, schema, field)
        if schema is config_schema.TIFLASH and isinstance(component.spec, TiFlashSpec):
            yield from _check_tiflash(read, field, component.spec)
        yield from listening.check_config(component.name, read, field)


def _configurations(component: Component) -> list[tuple[ConfigSchema, str, Config | None]]:
    """Schema, path and content of each configuration: TiFlash has two, Discovery none."""
    spec = component.spec
    if not isinstance(spec, WorkloadSpec):
        return []
    own = (component.type.config, component.config_field, component.config)
    if not isinstance(spec, TiFlashSpec):
        return [own]
    proxy = spec.config.proxy if spec.config else None
    return [own, (config_schema.TIFLASH_PROXY, f"{component.field}.config.proxy", proxy)]


def _check_tables(config: Table, schema: ConfigSchema, field: str) -> Iterator[Problem]:
    for path in schema.tables:
        value = get(config, path)
        if value is not None and not isinstance(value, dict):
            yield Problem(f"{field}.{path}", value, "must be a table, because the operator sets keys in it")


def _check_tiflash(config: Table, field: str, spec: TiFlashSpec) -> Iterator[Problem]:
    threshold = get(config, "flash.overlap_threshold")
    if threshold is not None and not (isinstance(threshold, float) and 0 <= threshold <= 1):
        yield Problem(f"{field}.flash.overlap_threshold", threshold, "must be a float from 0.0 to 1.0, such as 0.6")
    for path in _TIFLASH_LOGS:
        log = get(config, path)
        if log is not None and not (isinstance(log, str) and log.count("/") >= 2):
            yield Problem(f"{field}.{path}", log, "must be a path with a directory, such as /data0/logs/server.log")
        elif log is not None and path in _PRINTED and log.lstrip("/").split("/")[0] not in _volumes(spec):
            message = f"must lie on one of the volumes {', '.join(_volumes(spec))}, below the directory of its name"
            yield Problem(f"{field}.{path}", log, f"{message}, such as /data0/logs/server.log: a sidecar prints it")


def _volumes(spec: TiFlashSpec) -> list[str]:
    """The volumes of TiFlash's pods that may hold log files; one without a name is a separate problem."""
    claims = [f"data{index}" for index in range(len(spec.storage_claims))]
    return [*claims, *(volume["name"] for volume in spec.additional_volumes if "name" in volume)]
