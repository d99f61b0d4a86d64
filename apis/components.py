"""The table of components: every static fact about a component of a cluster.

The behaviour of a component (its objects, status, rolling updates, scaling, failover) is one value in its package below
`member/` (`member.components`). Everything else reads these two: stages, conditions, metrics, suspension, meta
managers, validation, the sandbox and the simulator. Components are observed and act in the order of the table
(lifecycle.md 3).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import structs

from apis import config_schema, flag_settings, listen_settings, pod_commands
from apis.cluster import ClusterSpec
from apis.component_specs import DiscoverySpec, TiCISpec
from apis.config_schema import ConfigSchema
from apis.flag_settings import FlagSettings
from apis.listen_settings import ListenSettings
from apis.pod_commands import PodCommands
from apis.shared import ComponentSpec, ComponentStatus, Json
from apis.tidbcluster import TidbClusterSpec

S = TypeVar("S", bound=ClusterSpec)

TIDB_CLUSTER = "TidbCluster"
DM_CLUSTER = "DMCluster"


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a component's spec in the spec of a cluster.

    `spec` finds it, None when it is absent; `field` is its path; `replaced` puts one in its place, and adds it when it
    is absent; `tree` is a cluster's spec with only this component, as JSON.
    """

    spec: Callable[[Any], ComponentSpec | None]
    field: Callable[[Any], str]
    replaced: Callable[[Any, ComponentSpec], Any]
    tree: Callable[[Json], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Facts about the volume claims of a component.

    - `hold_data`: True if they hold the only copy of some data.
    - `labelled`: True if they get the ids of the data plane as labels (lifecycle.md 11.4).
    - `reclaim_policy`: True if their volumes get the policy of the spec (11.3).
    - `deferred`: True if a scale-in keeps them (8.9, 11.2).
    """

    hold_data: bool = False
    labelled: bool = False
    reclaim_policy: bool = False
    deferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unready:
    """The reason of the Ready condition while a component is not ready; the lowest `rank` wins (lifecycle.md 2.3)."""

    rank: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """What conditions and events say while none of a component serves (`member.availability`).

    `effect` says in sentences what stops and what continues; `stops_all`: nothing of the database serves, and
    the outages of other components are its consequences. Components with a quorum have two further reasons:
    `leaderless`, when a majority runs without a leader, and `unreachable`, when the operator gets no answer though a
    majority seems to run.
    """

    reason: str
    effect: str
    stops_all: bool = False
    leaderless: str = ""
    unreachable: str = ""

    @property
    def reasons(self) -> frozenset[str]:
        """All reasons for an outage of the component."""
        return frozenset({self.reason, self.leaderless, self.unreachable}) - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentType:
    """The facts of one component.

    - `name`: its member type, which is the suffix of its StatefulSet. `label` is the value of its label
      `app.kubernetes.io/component`, by default the name. `instance_suffix` is what its instance name adds to the name
      of the cluster.
    - `title`: its name in messages, e.g. TiKV.
    - `of`: the kind of cluster that has it.
    - `slot`: the place of its spec in the cluster's.
    - `status`: finds its status; None where a cluster has none.
    - `ports`: port numbers by name, of which `metrics_port` names one. `peer_ports` are the ports of its headless
      Service, by their names there, and `peer_suffix` ends the name of that Service.
    - `always_scraped`: True if a TidbMonitor has a job for it also where no cluster has such pods, as in v1.6.
    - `listens`: the settings that would move the ports. `flags`: the settings that its start script overrides.
    - `data_volume`: the claim template of its main volume, whose size is required; empty when it has none.
      `storage_claims`: True if its volumes come from a list.
    - `is_store`: True if PD knows its pods as stores.
    - `starts_after`: the components that must serve first (3.1).
    - `upgrades_after`: the components whose upgrade or scaling comes first (7.2).
    - `suspend_rank`: the order of suspension, clients before their servers (12).
    - `unavailable`: what the component lacks while others wait for it. `outage`: what users lack when it no longer
      serves.
    - `replaceable`: True if failover replaces lost members (9).
    - `guarded`: True if image and configuration may not be emptied (defaults-and-validation.md 4).
    - `has_graceful_stop`: True if hooks can let its pods stop gracefully (`apis.graceful_stop`).
    - `ready_since`: the version from which its servers say whether they are ready; empty if none is known.
    - `commands`: the commands that its pods know (13).
    - `configured_in_place`: True if another configuration restarts no pod, whatever the spec says (objects.md 6.5).
    - `located_since`: the version from which the operator can set the location of each server while it runs (7.9);
      empty when it never can.
    """

    name: str
    title: str
    slot: Slot
    status: Callable[[Any], ComponentStatus | None]
    of: str = TIDB_CLUSTER
    default_image: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    metrics_port: str = ""
    always_scraped: bool = True
    peer_ports: Mapping[str, str] = field(default_factory=dict)
    peer_suffix: str = "-peer"
    config: ConfigSchema = config_schema.NONE
    listens: ListenSettings = field(default_factory=dict)
    flags: FlagSettings = field(default_factory=dict)
    data_volume: str = ""
    storage_claims: bool = False
    claims: Claims = field(default_factory=Claims)
    is_store: bool = False
    starts_after: tuple[str, ...] = ()
    upgrades_after: tuple[str, ...] = ()
    suspend_rank: int = 0
    label: str = ""
    instance_suffix: str = ""
    unavailable: str = ""
    unready: Unready | None = None
    outage: Outage | None = None
    replaceable: bool = False
    guarded: bool = False
    has_delete_slots: bool = True
    has_graceful_stop: bool = False
    ready_since: str = ""
    pod_management_policy: str = "Parallel"
    commands: PodCommands = field(default_factory=dict)
    configured_in_place: bool = False
    located_since: str = ""

    def __post_init__(self) -> None:
        """Set the label to its default."""
        object.__setattr__(self, "label", self.label or self.name)

    def replaced(self, spec: S, new: ComponentSpec) -> S:
        """The cluster's spec with another spec of the component."""
        result: S = self.slot.replaced(spec, new)
        return result

    @property
    def word(self) -> str:
        """The title in reasons, e.g. `DMMaster` for DM-master."""
        return "".join(part[:1].upper() + part[1:] for part in self.title.split("-"))

    @property
    def certificate_volume(self) -> str:
        """The volume with its certificate for other components (objects.md 9.1)."""
        return f"{self.name}-tls"


def own_section(name: str) -> Slot:
    """A component with its own field in the spec."""
    return Slot(
        attrgetter(name),
        lambda _: f"spec.{name}",
        lambda spec, new: structs.replace(spec, **{name: new}),
        lambda content: {name: content},
    )


def _microservice(name: str) -> Slot:
    """A component that is an entry of `spec.pdms`."""

    def found(spec: TidbClusterSpec) -> ComponentSpec | None:
        for entry in spec.pdms:
            if entry.name == name:
                return entry
        return None

    def field_of(spec: TidbClusterSpec) -> str:
        names: list[str] = [entry.name for entry in spec.pdms]
        return f"spec.pdms[{names.index(name)}]"

    def replaced(spec: TidbClusterSpec, new: ComponentSpec) -> TidbClusterSpec:
        if found(spec) is None:
            return structs.replace(spec, pdms=[*spec.pdms, new])
        return structs.replace(spec, pdms=[new if entry.name == name else entry for entry in spec.pdms])

    return Slot(found, field_of, replaced, lambda content: {"pdms": [{"name": name} | content]})


def _part_of_tici(name: str) -> Slot:
    """A component with a field of its own in `spec.tici`."""

    def replaced(spec: TidbClusterSpec, new: ComponentSpec) -> TidbClusterSpec:
        return structs.replace(spec, tici=structs.replace(spec.tici or TiCISpec(), **{name: new}))

    return Slot(
        lambda spec: getattr(spec.tici, name) if spec.tici else None,
        lambda _: f"spec.tici.{name}",
        replaced,
        lambda content: {"tici": {name: content}},
    )


def _discovery() -> Slot:
    """Every cluster has one, whatever its spec contains."""
    return Slot(
        lambda spec: spec.discovery or DiscoverySpec(),
        lambda _: "spec.discovery",
        lambda spec, new: structs.replace(spec, discovery=new),
        lambda content: {"discovery": content},
    )


_NAME: Callable[[ComponentType], str] = attrgetter("name")

_TABLE: dict[str, ComponentType] = {
    each.name: each
    for each in (
        ComponentType(
            name="discovery",
            title="Discovery",
            slot=_discovery(),
            status=lambda _: None,
            ports={"discovery": 10261, "proxy": 10262},
            has_delete_slots=False,
        ),
        ComponentType(
            name="tso",
            title="TSO",
            slot=_microservice("tso"),
            status=lambda status: status.pdms.get("tso"),
            default_image="pingcap/pd",
            ports={"server": 2379},
            metrics_port="server",
            config=config_schema.PD_MICROSERVICE,
            flags=flag_settings.OF_PD_MICROSERVICE,
            starts_after=("pd",),
            upgrades_after=("pd",),
            suspend_rank=10,
            unavailable="PD reports no member of the microservice tso that serves",
            unready=Unready(rank=10, reason="TSOUnhealthy", message="Member(s) of tso are not healthy"),
            outage=Outage(
                reason="NoTSOServer",
                effect="No component gets a timestamp, so the database cannot serve.",
                stops_all=True,
            ),
        ),
        ComponentType(
            name="scheduling",
            title="Scheduling",
            slot=_microservice("scheduling"),
            status=lambda status: status.pdms.get("scheduling"),
            default_image="pingcap/pd",
            ports={"server": 2379},
            metrics_port="server",
            config=config_schema.PD_MICROSERVICE,
            flags=flag_settings.OF_PD_MICROSERVICE,
            starts_after=("pd",),
            upgrades_after=("pd",),
            suspend_rank=11,
            unavailable="PD reports no member of the microservice scheduling that serves",
            unready=Unready(rank=11, reason="SchedulingUnhealthy", message="Member(s) of scheduling are not healthy"),
            outage=Outage(
                reason="NoSchedulingServer",
                effect="PD moves no regions; the database serves.",
            ),
        ),
        ComponentType(
            name="pd",
            title="PD",
            slot=own_section("pd"),
            status=attrgetter("pd"),
            default_image="pingcap/pd",
            ports={"client": 2379, "peer": 2380},
            metrics_port="client",
            peer_ports={"tcp-peer-2380": "peer", "tcp-peer-2379": "client"},
            config=config_schema.PD,
            listens=listen_settings.OF_PD,
            flags=flag_settings.OF_PD,
            data_volume="pd",
            claims=Claims(hold_data=True, labelled=True, reclaim_policy=True, deferred=True),
            suspend_rank=9,
            unavailable="PD has no quorum of healthy, Ready members yet",
            unready=Unready(rank=1, reason="PDUnhealthy", message="PD(s) are not healthy"),
            outage=Outage(
                reason="PDQuorumLost",
                effect="The database cannot serve.",
                stops_all=True,
                leaderless="PDNoLeader",
                unreachable="PDUnreachable",
            ),
            replaceable=True,
            guarded=True,
            has_graceful_stop=True,
            commands=pod_commands.OF_PD,
        ),
        ComponentType(
            name="tiproxy",
            title="TiProxy",
            slot=own_section("tiproxy"),
            status=attrgetter("tiproxy"),
            default_image="pingcap/tiproxy",
            ports={"api": 3080, "sql": 6000, "peer": 3081},
            metrics_port="api",
            peer_ports={"tiproxy-api": "api", "tiproxy-peer": "peer"},
            config=config_schema.TIPROXY,
            listens=listen_settings.OF_TIPROXY,
            flags=flag_settings.OF_TIPROXY,
            suspend_rank=8,
            unready=Unready(rank=8, reason="TiProxyUnhealthy", message="TiProxy(s) are not healthy"),
            outage=Outage(
                reason="NoTiProxyServer",
                effect="Clients cannot connect through TiProxy; those that connect to TiDB are not affected.",
            ),
            configured_in_place=True,
            located_since="v1.1.0",
        ),
        ComponentType(
            name="tiflash",
            title="TiFlash",
            slot=own_section("tiflash"),
            status=attrgetter("tiflash"),
            default_image="pingcap/tiflash",
            ports={
                "tiflash": 3930,
                "proxy": 20170,
                "tcp": 9000,
                "http": 8123,
                "internal": 9009,
                "metrics": 8234,
                "status": 20292,
            },
            metrics_port="metrics",
            peer_ports={"tiflash": "tiflash", "proxy": "proxy", "metrics": "metrics", "proxy-metrics": "status"},
            config=config_schema.TIFLASH,
            listens=listen_settings.OF_TIFLASH,
            flags=flag_settings.OF_TIFLASH,
            storage_claims=True,
            claims=Claims(hold_data=True, labelled=True, reclaim_policy=True, deferred=True),
            is_store=True,
            starts_after=("pd",),
            upgrades_after=("pd",),
            suspend_rank=2,
            unready=Unready(rank=4, reason="TiFlashStoreNotUp", message="TiFlash store(s) are not up"),
            outage=Outage(
                reason="TiFlashDown",
                effect="Queries that need TiFlash fail; the data in TiKV is not affected.",
            ),
            replaceable=True,
            commands=pod_commands.OF_TIFLASH,
        ),
        ComponentType(
            name="tikv",
            title="TiKV",
            slot=own_section("tikv"),
            status=attrgetter("tikv"),
            default_image="pingcap/tikv",
            ports={"server": 20160, "status": 20180},
            metrics_port="status",
            peer_ports={"peer": "server"},
            config=config_schema.TIKV,
            listens=listen_settings.OF_TIKV,
            flags=flag_settings.OF_TIKV,
            data_volume="tikv",
            claims=Claims(hold_data=True, labelled=True, reclaim_policy=True, deferred=True),
            is_store=True,
            starts_after=("pd", "tso", "scheduling"),
            upgrades_after=("pd", "tiflash"),
            suspend_rank=6,
            unavailable="no TiKV store is Up yet",
            unready=Unready(rank=2, reason="TiKVStoreNotUp", message="TiKV store(s) are not up"),
            outage=Outage(
                reason="RegionsWithoutQuorum",
                effect="No data can be read or written.",
            ),
            replaceable=True,
            guarded=True,
            has_graceful_stop=True,
            ready_since="v9.0.0",
            commands=pod_commands.OF_TIKV,
        ),
        ComponentType(
            name="pump",
            title="Pump",
            slot=own_section("pump"),
            status=attrgetter("pump"),
            default_image="pingcap/tidb-binlog",
            ports={"pump": 8250},
            metrics_port="pump",
            peer_ports={"pump": "pump"},
            peer_suffix="",
            config=config_schema.PUMP,
            listens=listen_settings.OF_PUMP,
            flags=flag_settings.OF_PUMP,
            data_volume="data",
            claims=Claims(labelled=True, reclaim_policy=True),
            starts_after=("pd",),
            upgrades_after=("pd", "tiflash", "tikv"),
            suspend_rank=7,
            unavailable="no Pump node is online yet",
            unready=Unready(rank=9, reason="PumpUnhealthy", message="Pump node(s) are not online"),
            outage=Outage(
                reason="NoPumpNode",
                effect="TiDB servers that write binlogs cannot commit.",
            ),
            has_delete_slots=False,
            pod_management_policy="OrderedReady",
        ),
        ComponentType(
            name="tidb",
            title="TiDB",
            slot=own_section("tidb"),
            status=attrgetter("tidb"),
            default_image="pingcap/tidb",
            ports={"server": 4000, "status": 10080},
            metrics_port="status",
            peer_ports={"status": "status"},
            config=config_schema.TIDB,
            listens=listen_settings.OF_TIDB,
            flags=flag_settings.OF_TIDB,
            claims=Claims(labelled=True, reclaim_policy=True, deferred=True),
            starts_after=("tikv", "pump"),
            upgrades_after=("pd", "tiflash", "tikv", "pump"),
            suspend_rank=1,
            unready=Unready(rank=3, reason="TiDBUnhealthy", message="TiDB(s) are not healthy"),
            outage=Outage(
                reason="NoTiDBServer",
                effect="Clients cannot use the database; its data is not affected.",
            ),
            replaceable=True,
            guarded=True,
            ready_since="v2.0.0",
            commands=pod_commands.OF_TIDB,
            located_since="v6.3.0",
        ),
        ComponentType(
            name="ticdc",
            title="TiCDC",
            slot=own_section("ticdc"),
            status=attrgetter("ticdc"),
            default_image="pingcap/ticdc",
            ports={"ticdc": 8301},
            metrics_port="ticdc",
            peer_ports={"ticdc": "ticdc"},
            config=config_schema.TICDC,
            listens=listen_settings.OF_TICDC,
            flags=flag_settings.OF_TICDC,
            claims=Claims(labelled=True),
            starts_after=("pd", "tikv"),
            upgrades_after=("pd", "tiflash", "tikv", "pump", "tidb"),
            suspend_rank=3,
            unready=Unready(rank=5, reason="TiCDCCaptureNotReady", message="TiCDC capture(s) are not up"),
            outage=Outage(
                reason="NoTiCDCServer",
                effect="Changefeeds stand still; the database is not affected.",
            ),
            has_graceful_stop=True,
        ),
        ComponentType(
            name="tici-meta",
            title="TiCI-meta",
            slot=_part_of_tici("meta"),
            status=attrgetter("tici_meta"),
            default_image="pingcap/tici",
            ports={"peer": 8500, "status": 8501},
            metrics_port="status",
            always_scraped=False,
            peer_ports={"peer": "peer", "status": "status"},
            config=config_schema.TICI_META,
            flags=flag_settings.OF_TICI,
            starts_after=("pd", "tikv"),
            upgrades_after=("pd", "tiflash", "tikv", "pump", "tidb", "ticdc"),
            suspend_rank=4,
            unready=Unready(rank=6, reason="TiCIMetaUnhealthy", message="TiCI meta pod(s) are not ready"),
            outage=Outage(
                reason="NoTiCIMeta",
                effect="Full-text indexes cannot be made or updated; the database serves.",
            ),
        ),
        ComponentType(
            name="tici-worker",
            title="TiCI-worker",
            slot=_part_of_tici("worker"),
            status=attrgetter("tici_worker"),
            default_image="pingcap/tici",
            ports={"peer": 8510, "status": 8511},
            metrics_port="status",
            always_scraped=False,
            peer_ports={"peer": "peer", "status": "status"},
            config=config_schema.TICI_WORKER,
            flags=flag_settings.OF_TICI,
            starts_after=("pd", "tikv"),
            upgrades_after=("pd", "tiflash", "tikv", "pump", "tidb", "ticdc", "tici-meta"),
            suspend_rank=5,
            unready=Unready(rank=7, reason="TiCIWorkerUnhealthy", message="TiCI worker pod(s) are not ready"),
            outage=Outage(
                reason="NoTiCIWorker",
                effect="Full-text indexes are not updated; the database serves.",
            ),
        ),
        ComponentType(
            name="dm-discovery",
            title="Discovery",
            of=DM_CLUSTER,
            label="discovery",
            instance_suffix="-dm",
            slot=_discovery(),
            status=lambda _: None,
            ports={"discovery": 10261, "proxy": 10262},
            has_delete_slots=False,
        ),
        ComponentType(
            name="dm-master",
            title="DM-master",
            of=DM_CLUSTER,
            slot=own_section("master"),
            status=attrgetter("master"),
            default_image="pingcap/dm",
            ports={"peer": 8291, "client": 8261},
            metrics_port="client",
            peer_ports={"dm-master-peer": "peer"},
            config=config_schema.DM_MASTER,
            flags=flag_settings.OF_DM_MASTER,
            data_volume="dm-master",
            claims=Claims(hold_data=True, labelled=True, reclaim_policy=True, deferred=True),
            suspend_rank=2,
            unavailable="DM has no quorum of healthy, Ready masters yet",
            unready=Unready(rank=1, reason="DMMasterUnhealthy", message="dm-master(s) are not healthy"),
            outage=Outage(
                reason="DMMasterQuorumLost",
                effect="Replication tasks cannot be managed, and no worker takes over from another.",
                leaderless="DMMasterNoLeader",
                unreachable="DMMasterUnreachable",
            ),
            replaceable=True,
            guarded=True,
        ),
        ComponentType(
            name="dm-worker",
            title="DM-worker",
            of=DM_CLUSTER,
            slot=own_section("worker"),
            status=attrgetter("worker"),
            default_image="pingcap/dm",
            ports={"client": 8262},
            metrics_port="client",
            peer_ports={"dm-worker": "client"},
            config=config_schema.DM_WORKER,
            flags=flag_settings.OF_DM_WORKER,
            data_volume="dm-worker",
            claims=Claims(hold_data=True, labelled=True, reclaim_policy=True, deferred=True),
            starts_after=("dm-master",),
            upgrades_after=("dm-master",),
            suspend_rank=1,
            unready=Unready(rank=2, reason="DMWorkerUnhealthy", message="some dm-worker(s) are not up yet"),
            outage=Outage(
                reason="NoDMWorker",
                effect="Nothing is replicated.",
            ),
            replaceable=True,
            guarded=True,
        ),
    )
}


@cache
def component_types(of: str = TIDB_CLUSTER) -> tuple[ComponentType, ...]:
    """The rows of a kind of cluster, in the order in which components are observed and act."""
    return tuple(each for each in _TABLE.values() if each.of == of)


component_type: Callable[[str], ComponentType] = _TABLE.__getitem__
"""The row of a component, by its name. Raises KeyError for an unknown name."""


def with_needed(row: ComponentType) -> tuple[ComponentType, ...]:
    """A component after all that must serve before it (3.1)."""
    needed = [each for name in row.starts_after for each in with_needed(component_type(name))]
    return tuple({each.name: each for each in (*needed, row)}.values())


def is_component(name: str, of: str = TIDB_CLUSTER) -> bool:
    """True if a kind of cluster has a component of this name."""
    row = _TABLE.get(name)
    return row is not None and row.of == of


def component_names(where: Callable[[ComponentType], bool] | None = None, of: str = TIDB_CLUSTER) -> tuple[str, ...]:
    """The names of a kind of cluster's components that satisfy `where`, in the order of the table."""
    return tuple(map(_NAME, filter(where, component_types(of))))


def status_section(status: Json, component: str) -> Json:
    """The section of a component in the status of a TidbCluster, as JSON; empty without one.

    `tici-meta` has `ticiMeta`; PD's microservices are listed by name in `pdms`.
    """
    first, *rest = component.split("-")
    own: Json = status.get("".join([first, *(word.title() for word in rest)])) or {}
    return own or (status.get("pdms") or {}).get(component) or {}


@contextmanager
def with_component(row: ComponentType) -> Iterator[None]:
    """Within the block, add a row to the table, for a test with its own component."""
    _TABLE[row.name] = row
    component_types.cache_clear()
    try:
        yield
    finally:
        del _TABLE[row.name]
        component_types.cache_clear()
