"""The specs and statuses of the components of a DMCluster (api/dmcluster.fields)."""

from typing import Annotated, Literal, Self

from msgspec import field, structs

from apis.component_specs import MAX_FAILOVER_COUNT, DiscoverySpec, given
from apis.shared import (
    Config,
    Count,
    Failover,
    Model,
    NullableTime,
    PDMember,
    Quantity,
    ServiceSpec,
    SyncedStatus,
    UnjoinedMember,
    WorkloadSpec,
    crd_default,
)

STORAGE_SIZE = "10Gi"
OFFLINE = "offline"
"""The stage of a worker of which the masters have heard nothing for a while."""


class DMDiscoverySpec(DiscoverySpec, kw_only=True):
    """`spec.discovery`: the service that masters ask whether to start a cluster or to join one."""

    address: str = ""


class DMComponentSpec(WorkloadSpec, kw_only=True):
    """The common settings of DM's masters and workers."""

    base_image: Annotated[str, crd_default("pingcap/dm")] = "pingcap/dm"
    max_failover_count: Count | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    storage_size: str = ""
    data_sub_dir: str = ""
    config: Config | None = None

    @property
    def server_config(self) -> Config | None:
        return self.config

    @property
    def data_size(self) -> Quantity | None:
        """See `WorkloadSpec`: there is always a volume."""
        return self.storage_size or STORAGE_SIZE

    @property
    def data_size_path(self) -> str:
        return "storageSize"

    def with_defaults(self) -> Self:
        return structs.replace(self, max_failover_count=given(self.max_failover_count, MAX_FAILOVER_COUNT))


class DMMasterServiceSpec(ServiceSpec, kw_only=True):
    """`spec.master.service`: the Service through which masters are reached."""

    external_traffic_policy: str | None = None
    master_node_port: int | None = None


class DMMasterSpec(DMComponentSpec, kw_only=True):
    """`spec.master`: the masters, which schedule tasks and keep a quorum."""

    service: DMMasterServiceSpec | None = None
    start_up_script_version: Literal["", "v1"] = ""


class DMWorkerSpec(DMComponentSpec, kw_only=True):
    """`spec.worker`: the workers, each of which replicates one source."""

    recover_failover: bool = False
    failover: Failover | None = None


class DMFailureMember(Model, kw_only=True):
    """A value of `status.master.failureMembers`: a master replaced by failover."""

    pod_name: str = ""
    member_id: str = field(name="memberID", default="")
    pvc_uid: str = field(name="pvcUID", default="")
    member_deleted: bool = False
    created_at: NullableTime = None


class DMMasterStatus(SyncedStatus, kw_only=True):
    """`status.master`: the masters by name, which is the name of the pod."""

    members: dict[str, PDMember] = {}
    leader: PDMember | None = None
    failure_members: dict[str, DMFailureMember] = {}
    unjoined_members: dict[str, UnjoinedMember] = {}
    image: str = ""

    @property
    def health(self) -> list[bool]:
        return [member.health for member in self.members.values()]

    @property
    def failed_pods(self) -> list[str]:
        return [member.pod_name for member in self.failure_members.values() if member.member_deleted]

    @property
    def failures(self) -> int:
        return len(self.failure_members)

    def is_available(self, replicas: int) -> bool:
        """See `ComponentStatus`: a quorum of known, healthy and Ready members."""
        return self.runs and min(len(self.health), sum(self.health), self.ready_replicas) >= replicas // 2 + 1

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members, self.leader, self.unjoined_members, self.synced = {}, None, {}, False


class DMWorkerMember(Model, kw_only=True):
    """A worker as the masters last reported it. `stage` is free, bound, relay or offline."""

    name: str = ""
    addr: str = ""
    stage: str
    last_transition_time: NullableTime = None

    @property
    def serves(self) -> bool:
        """True if the masters hear of it."""
        return self.stage != OFFLINE


class DMWorkerFailureMember(Model, kw_only=True):
    """A value of `status.worker.failureMembers`: a worker that has a substitute."""

    pod_name: str = ""
    created_at: NullableTime = None


class DMWorkerStatus(SyncedStatus, kw_only=True):
    """`status.worker`: the workers by name, which is the name of the pod."""

    members: dict[str, DMWorkerMember] = {}
    failure_members: dict[str, DMWorkerFailureMember] = {}
    failover_uid: str = field(name="failoverUID", default="")
    image: str = ""

    @property
    def health(self) -> list[bool]:
        return [member.serves for member in self.members.values()]

    @property
    def failed_pods(self) -> list[str]:
        return [member.pod_name for member in self.failure_members.values()]

    def forget_members(self) -> None:
        self.stateful_set = None
        self.members, self.synced = {}, False
