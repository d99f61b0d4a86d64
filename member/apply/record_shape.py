"""The shape of a record of the last write, for the parts that are read by key (objects.md 11.4).

Anyone who may edit a StatefulSet can change its record; one with a different shape counts as no record.
"""

import msgspec

from kube.objects import Json
from ports.structs import convert


class _Shape(msgspec.Struct, rename="camel"):
    """A part of a record; fields that are not declared may have any value, as they are only compared."""


class _Named(_Shape):
    name: str


class _Container(_Named):
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Json] | None = None
    volume_mounts: list[_Named] | None = None


class _Selector(_Shape):
    match_labels: Json


class _Constraint(_Shape):
    label_selector: _Selector


class PodShape(_Shape):
    """The spec of a pod."""

    containers: list[_Container]
    init_containers: list[_Container] | None = None
    volumes: list[_Named] | None = None
    topology_spread_constraints: list[_Constraint] | None = None


class _Metadata(_Shape):
    annotations: dict[str, str] | None = None


class _Template(_Shape):
    spec: PodShape
    metadata: _Metadata | None = None


class _Claim(_Shape):
    metadata: _Named
    spec: Json


class _RollingUpdate(_Shape):
    partition: int = 0


class _Strategy(_Shape):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _Port(_Shape):
    port: int
    protocol: str = "TCP"


class _Keys(_Shape):
    labels: list[str] | None = None
    annotations: list[str] | None = None


class RecordShape(_Shape):
    """The spec of a StatefulSet or Service, and the keys of metadata that the user asked for."""

    template: _Template | None = None
    volume_claim_templates: list[_Claim] | None = None
    update_strategy: _Strategy | None = None
    ports: list[_Port] | None = None
    metadata: _Keys | None = None


def shaped_as(tree: object, shape: type[_Shape]) -> Json | None:
    """`tree` if it has this shape; else None."""
    try:
        convert(tree, shape)
    except msgspec.ValidationError:
        return None
    return tree if isinstance(tree, dict) else None
