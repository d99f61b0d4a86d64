"""The base of models of custom resources."""

from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]
"""A Kubernetes sub-tree or object, camelCase."""


class Model(msgspec.Struct, rename="camel", omit_defaults=True):
    """The base of all models: camelCase in JSON, defaults not written."""


class Metadata(Model, kw_only=True):
    """The metadata of a custom resource that this project reads.

    `counts_slots`: True if delete slots of a cluster count (`apis.ordinals.gated`). No JSON has it.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    counts_slots: bool = msgspec.field(name="(AdvancedStatefulSet)", default=False)
