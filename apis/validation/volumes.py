"""Sizes, volumes and directories of a component (defaults-and-validation.md 3.3)."""

from collections.abc import Iterator, Mapping, Sequence

from apis.accessor import Component
from apis.component_specs import (
    PDMSSpec,
    PDSpec,
    TiCDCSpec,
    TiCIComponentSpec,
    TiDBSpec,
    TiFlashSpec,
    TiKVSpec,
    TiProxySpec,
)
from apis.dm_components import STORAGE_SIZE, DMComponentSpec
from apis.problem import Problem
from apis.shared import Json, Quantity, StorageVolume
from ports import quantity

WITH_STORAGE_VOLUMES = (PDSpec, PDMSSpec, TiDBSpec, TiKVSpec, TiCDCSpec, TiProxySpec, TiCIComponentSpec)


def check(component: Component) -> Iterator[Problem]:
    """Sizes are quantities, data volumes have one, named volumes exist, directories stay inside their volume."""
    spec, field = component.spec, component.field
    yield from _check_quantities(spec.requests, f"{field}.requests")
    yield from _check_quantities(spec.limits, f"{field}.limits")
    if component.type.data_volume and component.storage_request is None:
        yield _without_size(f"{field}.{component.workload.data_size_path}")
    if isinstance(spec, DMComponentSpec):
        yield from _check_quantity(spec.storage_size or STORAGE_SIZE, f"{field}.storageSize")
    if isinstance(spec, WITH_STORAGE_VOLUMES):
        yield from _check_storage_volumes(spec.storage_volumes, f"{field}.storageVolumes")
    if isinstance(spec, PDSpec | TiKVSpec | DMComponentSpec):
        yield from _check_sub_directory(spec.data_sub_dir, f"{field}.dataSubDir")
    if isinstance(spec, TiFlashSpec):
        yield from _check_claims(spec, field)
    yield from _check_log_volumes(component)


def _check_quantities(quantities: Mapping[str, Quantity], field: str) -> Iterator[Problem]:
    for name, value in quantities.items():
        yield from _check_quantity(value, f"{field}.{name}")


def _check_quantity(value: Quantity, field: str) -> Iterator[Problem]:
    try:
        units = quantity.parse(value)
    except ValueError:
        yield Problem(field, value, "must be a quantity such as 10Gi")
        return
    if units < 0 and not field.endswith((".storage", ".storageSize")):  # `stricter` checks the sizes of volumes
        yield Problem(field, value, "must not be negative")


def _without_size(field: str) -> Problem:
    return Problem(field, None, "is required; specify the size of the data volume, such as 100Gi")


def _check_storage_volumes(volumes: Sequence[StorageVolume], field: str) -> Iterator[Problem]:
    for index, volume in enumerate(volumes):
        if not volume.name:
            yield Problem(f"{field}[{index}].name", volume.name, "must not be empty")
        yield from _check_quantity(volume.storage_size, f"{field}[{index}].storageSize")


def _check_sub_directory(directory: str, field: str) -> Iterator[Problem]:
    if directory.startswith("/"):
        yield Problem(field, directory, "must be relative to the data volume; remove the leading /")
    if ".." in directory.split("/"):
        yield Problem(field, directory, "must be inside the data volume; remove ..")


def _check_claims(tiflash: TiFlashSpec, field: str) -> Iterator[Problem]:
    if not tiflash.storage_claims:
        yield Problem(
            f"{field}.storageClaims", None, "must have at least one item, because TiFlash keeps its data there"
        )
    for index, claim in enumerate(tiflash.storage_claims):
        requests = (claim.resources or {}).get("requests") or {}
        at = f"{field}.storageClaims[{index}].resources.requests.storage"
        if "storage" in requests:
            yield from _check_quantity(requests["storage"], at)
        else:
            yield _without_size(at)


def _check_log_volumes(component: Component) -> Iterator[Problem]:
    spec, field = component.spec, component.field
    if isinstance(spec, TiKVSpec):
        wanted = {
            "raftLogVolumeName": spec.raft_log_volume_name if spec.separate_raft_log else "",
            "rocksDBLogVolumeName": spec.rocks_db_log_volume_name if spec.separate_rocks_db_log else "",
        }
    elif isinstance(spec, TiDBSpec):
        wanted = {"slowLogVolumeName": "" if spec.separate_slow_log is False else spec.slow_log_volume_name}
    else:
        return
    mounted = _names(spec.additional_volumes) & _names(spec.additional_volume_mounts)
    known = {volume.name for volume in spec.storage_volumes if volume.mount_path} | mounted
    for key, name in wanted.items():
        if name and name not in known:
            message = (
                f"must be in {field}.storageVolumes, with a mountPath, or in additionalVolumes and "
                "additionalVolumeMounts"
            )
            yield Problem(f"{field}.{key}", name, message)


def _names(entries: Sequence[Json]) -> set[str]:
    return {str(entry.get("name")) for entry in entries}
