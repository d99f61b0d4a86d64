"""Kubernetes' definitions of the types that specs embed: the parts of a pod, of its volumes and of its Services.

`kubernetes_types.json` holds their fields as Kubernetes publishes them; `sandbox.apiserver.import_types` writes it. The
trees themselves stay as users write them (`apis.shared.Json`), so that fields newer than these types survive.
`apis.decoding` holds each tree against its type and reports what does not fit; `apis.unknown_fields` reports the fields
that the type does not have. The API server checks the rest, e.g. that required fields exist.
"""

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

SHAPE: Final = "shape"
"""The key of an annotation with the name of a tree's type; `shape` creates a model of it."""
FREE: Final = "free"
"""The key of the annotation of a value that may be any tree, such as a configuration."""
PUBLISHED: Final = Path(__file__).with_name("kubernetes_types.json")
"""The fields of each type with their types: a scalar or another type, after `[]` where it is a list, `{}` a map."""

QUANTITY: Final = "quantity"
INTEGER_OR_STRING: Final = "integer or string"
ANYTHING: Final = "anything"

_SCALARS: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    QUANTITY: str | int | float,
    INTEGER_OR_STRING: int | str,
    ANYTHING: Any,
}

_Tree: TypeAlias = dict[str, Any]


@cache
def shape(name: str) -> type[msgspec.Struct]:
    """The model of a type: every field may be absent."""
    fields = [(_python_name(field), _type_of(text) | None, None) for field, text in _published()[name].items()]
    names = {_python_name(field): field for field in _published()[name]}
    return msgspec.defstruct(name, fields, rename=names, kw_only=True)


def known_fields(name: str) -> Collection[str]:
    """The fields of a type; a newer Kubernetes may have more."""
    return _published()[name].keys()


@cache
def _published() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = msgspec.json.decode(PUBLISHED.read_bytes())
    return found


def _python_name(field: str) -> str:
    """A name that is no keyword of Python: `exec` once was one, `continue` is a field of Kubernetes."""
    return f"{field}_"


def _type_of(text: str) -> Any:
    match text[:2]:
        case "[]":
            return list[_type_of(text[2:])]  # type: ignore[misc]  # a type that is only known at run time
        case "{}":
            return dict[str, _type_of(text[2:])]  # type: ignore[misc]
    return _SCALARS.get(text) or shape(text)


ROOTS: Final = (
    "Affinity",
    "ConfigMapKeySelector",
    "Container",
    "DeploymentCondition",
    "EnvFromSource",
    "EnvVar",
    "IngressTLS",
    "JobCondition",
    "Lifecycle",
    "LocalObjectReference",
    "ObjectMeta",
    "PersistentVolumeClaimSpec",
    "PodDNSConfig",
    "PodSecurityContext",
    "PodSpec",
    "ResourceClaim",
    "ResourceRequirements",
    "SecretKeySelector",
    "SecurityContext",
    "ServicePort",
    "StatefulSetStatus",
    "Toleration",
    "Volume",
    "VolumeMount",
)
"""The types that specs and statuses embed."""


def _shaped(name: str) -> Meta:
    return Meta(extra={SHAPE: name})


Affinity: TypeAlias = Annotated[_Tree, _shaped("Affinity")]
ClaimMetadata: TypeAlias = Annotated[_Tree, _shaped("ObjectMeta")]
ClaimSpec: TypeAlias = Annotated[_Tree, _shaped("PersistentVolumeClaimSpec")]
Condition: TypeAlias = Annotated[_Tree, _shaped("DeploymentCondition")]
Container: TypeAlias = Annotated[_Tree, _shaped("Container")]
ContainerSecurity: TypeAlias = Annotated[_Tree, _shaped("SecurityContext")]
DnsConfig: TypeAlias = Annotated[_Tree, _shaped("PodDNSConfig")]
IngressTls: TypeAlias = Annotated[_Tree, _shaped("IngressTLS")]
JobCondition: TypeAlias = Annotated[_Tree, _shaped("JobCondition")]
KeySelector: TypeAlias = Annotated[_Tree, _shaped("SecretKeySelector")]
"""A key of a Secret or of a ConfigMap in the namespace of the object."""
Lifecycle: TypeAlias = Annotated[_Tree, _shaped("Lifecycle")]
LocalReference: TypeAlias = Annotated[_Tree, _shaped("LocalObjectReference")]
"""The name of an object in the same namespace."""
Mount: TypeAlias = Annotated[_Tree, _shaped("VolumeMount")]
PodClaim: TypeAlias = Annotated[_Tree, _shaped("ResourceClaim")]
"""A device of the pod that a container uses."""
PodSecurity: TypeAlias = Annotated[_Tree, _shaped("PodSecurityContext")]
PodSpec: TypeAlias = Annotated[_Tree, _shaped("PodSpec")]
Resources: TypeAlias = Annotated[_Tree, _shaped("ResourceRequirements")]
ServicePort: TypeAlias = Annotated[_Tree, _shaped("ServicePort")]
StatefulSetStatus: TypeAlias = Annotated[_Tree, _shaped("StatefulSetStatus")]
Toleration: TypeAlias = Annotated[_Tree, _shaped("Toleration")]
Variable: TypeAlias = Annotated[_Tree, _shaped("EnvVar")]
VariablesFrom: TypeAlias = Annotated[_Tree, _shaped("EnvFromSource")]
Volume: TypeAlias = Annotated[_Tree, _shaped("Volume")]
