"""What Kubernetes says of the types that specs embed: the parts of a pod, of its volumes and of its Services.

The trees themselves stay as users write them (`apis.shared.Json`), so that fields newer than these models survive.
`apis.decoding` holds each tree against its model and reports what does not fit, down to the last level that any code
reads. What else a tree must be, such as complete, the API server knows.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, field

SHAPE: Final = "shape"
"""The key of an annotation under which the model of a tree stands."""
FREE: Final = "free"
"""The key of the annotation of a value that may be any tree, such as a configuration."""

_Tree: TypeAlias = dict[str, Any]
_IntOrString: TypeAlias = int | str
_Quantity: TypeAlias = str | int | float
_Quantities: TypeAlias = dict[str, _Quantity] | None
_Strings: TypeAlias = list[str] | None


class _Shape(msgspec.Struct, rename="camel", kw_only=True):
    """The base of these models; every field may be absent."""


class _LocalReference(_Shape):
    name: str | None = None


class _KeySelector(_LocalReference):
    key: str | None = None
    optional: bool | None = None


class _FieldSelector(_Shape):
    api_version: str | None = None
    field_path: str | None = None


class _ResourceFieldSelector(_Shape):
    container_name: str | None = None
    resource: str | None = None
    divisor: _Quantity | None = None


class _VariableSource(_Shape):
    config_map_key_ref: _KeySelector | None = None
    secret_key_ref: _KeySelector | None = None
    field_ref: _FieldSelector | None = None
    resource_field_ref: _ResourceFieldSelector | None = None


class _Variable(_Shape):
    name: str | None = None
    value: str | None = None
    value_from: _VariableSource | None = None


class _OptionalReference(_LocalReference):
    optional: bool | None = None


class _VariablesFrom(_Shape):
    prefix: str | None = None
    config_map_ref: _OptionalReference | None = None
    secret_ref: _OptionalReference | None = None


class _Resources(_Shape):
    claims: list[_LocalReference] | None = None
    limits: _Quantities = None
    requests: _Quantities = None


class _Mount(_Shape):
    name: str | None = None
    mount_path: str | None = None
    mount_propagation: str | None = None
    read_only: bool | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class _Port(_Shape):
    name: str | None = None
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = field(name="hostIP", default=None)
    protocol: str | None = None


class _Exec(_Shape):
    command: _Strings = None


class _HttpHeader(_Shape):
    name: str | None = None
    value: str | None = None


class _HttpGet(_Shape):
    host: str | None = None
    http_headers: list[_HttpHeader] | None = None
    path: str | None = None
    port: _IntOrString | None = None
    scheme: str | None = None


class _TcpSocket(_Shape):
    host: str | None = None
    port: _IntOrString | None = None


class _Sleep(_Shape):
    seconds: int | None = None


class _Handler(_Shape):
    exec: _Exec | None = None
    http_get: _HttpGet | None = None
    tcp_socket: _TcpSocket | None = None
    sleep: _Sleep | None = None


class _Lifecycle(_Shape):
    post_start: _Handler | None = None
    pre_stop: _Handler | None = None


class _Grpc(_Shape):
    port: int | None = None
    service: str | None = None


class _Probe(_Handler):
    grpc: _Grpc | None = None
    failure_threshold: int | None = None
    initial_delay_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int | None = None


class _Capabilities(_Shape):
    add: _Strings = None
    drop: _Strings = None


class _CommonSecurity(_Shape):
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: dict[str, str] | None = None
    seccomp_profile: dict[str, str] | None = None
    app_armor_profile: dict[str, str] | None = None
    windows_options: _Tree | None = None


class _ContainerSecurity(_CommonSecurity):
    allow_privilege_escalation: bool | None = None
    capabilities: _Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None


class _Sysctl(_Shape):
    name: str | None = None
    value: str | None = None


class _PodSecurity(_CommonSecurity):
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    supplemental_groups: list[int] | None = None
    sysctls: list[_Sysctl] | None = None


class _Container(_Shape):
    name: str | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    command: _Strings = None
    args: _Strings = None
    working_dir: str | None = None
    env: list[_Variable] | None = None
    env_from: list[_VariablesFrom] | None = None
    ports: list[_Port] | None = None
    resources: _Resources | None = None
    resize_policy: list[_Tree] | None = None
    restart_policy: str | None = None
    volume_mounts: list[_Mount] | None = None
    volume_devices: list[_Tree] | None = None
    liveness_probe: _Probe | None = None
    readiness_probe: _Probe | None = None
    startup_probe: _Probe | None = None
    lifecycle: _Lifecycle | None = None
    security_context: _ContainerSecurity | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None


class _KeyToPath(_Shape):
    key: str | None = None
    path: str | None = None
    mode: int | None = None


class _ConfigMapVolume(_OptionalReference):
    default_mode: int | None = None
    items: list[_KeyToPath] | None = None


class _SecretVolume(_Shape):
    secret_name: str | None = None
    default_mode: int | None = None
    items: list[_KeyToPath] | None = None
    optional: bool | None = None


class _EmptyDir(_Shape):
    medium: str | None = None
    size_limit: _Quantity | None = None


class _HostPath(_Shape):
    path: str | None = None
    type: str | None = None


class _ClaimVolume(_Shape):
    claim_name: str | None = None
    read_only: bool | None = None


class _Nfs(_Shape):
    server: str | None = None
    path: str | None = None
    read_only: bool | None = None


class _Volume(_Shape):
    """A volume; the sources that are missing here are trees of which nothing is read."""

    name: str | None = None
    config_map: _ConfigMapVolume | None = None
    secret: _SecretVolume | None = None
    empty_dir: _EmptyDir | None = None
    host_path: _HostPath | None = None
    persistent_volume_claim: _ClaimVolume | None = None
    nfs: _Nfs | None = None
    csi: _Tree | None = None
    downward_api: _Tree | None = field(name="downwardAPI", default=None)
    ephemeral: _Tree | None = None
    projected: _Tree | None = None


class _SelectorTerm(_Shape):
    key: str | None = None
    operator: str | None = None
    values: _Strings = None


class _NodeTerm(_Shape):
    match_expressions: list[_SelectorTerm] | None = None
    match_fields: list[_SelectorTerm] | None = None


class _PreferredNodes(_Shape):
    weight: int | None = None
    preference: _NodeTerm | None = None


class _RequiredNodes(_Shape):
    node_selector_terms: list[_NodeTerm] | None = None


class _NodeAffinity(_Shape):
    preferred_during_scheduling_ignored_during_execution: list[_PreferredNodes] | None = None
    required_during_scheduling_ignored_during_execution: _RequiredNodes | None = None


class _LabelSelector(_Shape):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_SelectorTerm] | None = None


class _PodTerm(_Shape):
    label_selector: _LabelSelector | None = None
    match_label_keys: _Strings = None
    mismatch_label_keys: _Strings = None
    namespace_selector: _LabelSelector | None = None
    namespaces: _Strings = None
    topology_key: str | None = None


class _PreferredPods(_Shape):
    weight: int | None = None
    pod_affinity_term: _PodTerm | None = None


class _PodAffinity(_Shape):
    preferred_during_scheduling_ignored_during_execution: list[_PreferredPods] | None = None
    required_during_scheduling_ignored_during_execution: list[_PodTerm] | None = None


class _Affinity(_Shape):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Toleration(_Shape):
    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: int | None = None
    value: str | None = None


class _DnsOption(_Shape):
    name: str | None = None
    value: str | None = None


class _DnsConfig(_Shape):
    nameservers: _Strings = None
    options: list[_DnsOption] | None = None
    searches: _Strings = None


class _ServicePort(_Shape):
    app_protocol: str | None = None
    name: str | None = None
    node_port: int | None = None
    port: int | None = None
    protocol: str | None = None
    target_port: _IntOrString | None = None


class _IngressTls(_Shape):
    hosts: _Strings = None
    secret_name: str | None = None


class _Condition(_Shape):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_update_time: str | None = None


class _StatefulSetStatus(_Shape):
    replicas: int | None = None
    ready_replicas: int | None = None
    current_replicas: int | None = None
    updated_replicas: int | None = None
    available_replicas: int | None = None
    observed_generation: int | None = None
    collision_count: int | None = None
    current_revision: str | None = None
    update_revision: str | None = None
    conditions: list[_Condition] | None = None


def _shaped(model: type[_Shape]) -> Meta:
    return Meta(extra={SHAPE: model})


Affinity: TypeAlias = Annotated[_Tree, _shaped(_Affinity)]
Condition: TypeAlias = Annotated[_Tree, _shaped(_Condition)]
Container: TypeAlias = Annotated[_Tree, _shaped(_Container)]
ContainerSecurity: TypeAlias = Annotated[_Tree, _shaped(_ContainerSecurity)]
DnsConfig: TypeAlias = Annotated[_Tree, _shaped(_DnsConfig)]
IngressTls: TypeAlias = Annotated[_Tree, _shaped(_IngressTls)]
KeySelector: TypeAlias = Annotated[_Tree, _shaped(_KeySelector)]
"""A key of a Secret or of a ConfigMap in the namespace of the object."""
Lifecycle: TypeAlias = Annotated[_Tree, _shaped(_Lifecycle)]
LocalReference: TypeAlias = Annotated[_Tree, _shaped(_LocalReference)]
"""The name of an object in the same namespace."""
Mount: TypeAlias = Annotated[_Tree, _shaped(_Mount)]
PodSecurity: TypeAlias = Annotated[_Tree, _shaped(_PodSecurity)]
Resources: TypeAlias = Annotated[_Tree, _shaped(_Resources)]
ServicePort: TypeAlias = Annotated[_Tree, _shaped(_ServicePort)]
StatefulSetStatus: TypeAlias = Annotated[_Tree, _shaped(_StatefulSetStatus)]
Toleration: TypeAlias = Annotated[_Tree, _shaped(_Toleration)]
Variable: TypeAlias = Annotated[_Tree, _shaped(_Variable)]
VariablesFrom: TypeAlias = Annotated[_Tree, _shaped(_VariablesFrom)]
Volume: TypeAlias = Annotated[_Tree, _shaped(_Volume)]
