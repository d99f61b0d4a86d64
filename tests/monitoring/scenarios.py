"""Events in the life of clusters, and the alerts that they should raise: recorded from the operator in the sandbox."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from kube.objects import Json
from kube.resources import SECRETS, TIDB_CLUSTERS
from member.context import FailoverSettings
from rehearsal.operator import SETTINGS, Operator
from sandbox.dataplane.faults import Fault, Trouble
from tests.certificates import CLIENT, TODAY, Authority, secret_name
from tests.operator_world import NAMESPACE, OperatorWorld, sample

QUICKLY = replace(SETTINGS, failover=FailoverSettings(pd_period=60.0, tikv_period=60.0, tidb_period=60.0))

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`happens` to a Ready cluster of 3 PD, 3 TiKV and 2 TiDB, or to one with another `spec`, which need not get Ready.

    After `minutes`, these alerts fire and no others; each has these labels beside namespace, name and severity.
    """

    name: str
    happens: Callable[[OperatorWorld], object] = lambda _: None
    spec: Json = field(default_factory=dict)
    minutes: int = 20
    fires: Mapping[str, Labels] = field(default_factory=dict)
    processes: int = 1


def cluster(spec: Json) -> Json:
    """The cluster of a scenario."""
    body = sample("basic")
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        body["spec"][component] |= {"replicas": replicas, "maxFailoverCount": 3} | spec.get(component, {})
    body["spec"] |= {part: value for part, value in spec.items() if part not in ("pd", "tikv", "tidb")}
    body["spec"]["pd"]["config"] = '[schedule]\nmax-store-down-time = "1m"\n'
    return body


def second_operator(world: OperatorWorld) -> Operator:
    """A second process that considers itself the leader, with its own Lease."""
    return Operator(world.world, world.clock, 2)


def _lose(*pods: str) -> Callable[[OperatorWorld], None]:
    def happens(world: OperatorWorld) -> None:
        for pod in pods:
            world.world.faults.pod_crash_loop(f"{NAMESPACE}/{pod}")

    return happens


def _change(**spec: Any) -> Callable[[OperatorWorld], None]:
    return lambda world: world.change(**spec)


def _bad_image(world: OperatorWorld) -> None:
    world.world.faults.image_missing("*:v9.9.9")
    world.change(tidb={"version": "v9.9.9"})


def _client_certificate(world: OperatorWorld) -> None:
    """Create the Secret of TiDB's clients; the Secret of TiDB's server is missing."""
    world.admin.create(SECRETS, Authority().pair().secret("basic-tidb-client-secret"), NAMESPACE)


def _certificates(days: float) -> Callable[[OperatorWorld], None]:
    """All Secrets of a cluster, of which TiKV's expires after some days."""

    def happens(world: OperatorWorld) -> None:
        authority = Authority()
        for each in ("pd", "tikv", "tidb", CLIENT):
            pair = authority.of(each, ends=TODAY + timedelta(days=days)) if each == "tikv" else authority.of(each)
            world.admin.create(SECRETS, pair.secret(secret_name(each)), NAMESPACE)
        world.run_until_ready()

    return happens


def _canary(world: OperatorWorld) -> None:
    """One pod of TiKV tries a change; the user holds the others back."""
    annotations = {"tidb.pingcap.com/tikv-partition": "2"}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": annotations}})
    world.change(tikv={"annotations": {"a": "b"}})


def _slow_upgrade(world: OperatorWorld) -> None:
    world.world.faults.pod_slow(f"{NAMESPACE}/basic-*", 400.0)
    world.change(version="v8.5.3")


_EXPIRING = {"secret": "basic-tikv-cluster-secret"}
_TLS = {"tlsCluster": {"enabled": True}}


def _pd_silent(world: OperatorWorld) -> None:
    world.world.faults.network_fault(Fault(Trouble.BLACK_HOLE, f"{NAMESPACE}/basic-pd*"))


SCENARIOS = (
    Scenario(name="all is well", minutes=30),
    Scenario(name="suspended", happens=_change(suspendAction={"suspendStatefulSet": True}), minutes=30),
    Scenario(name="one component suspended", happens=_change(tidb={"suspendAction": {"suspendStatefulSet": True}})),
    Scenario(name="paused", happens=_change(paused=True)),
    Scenario(name="a canary", happens=_canary, minutes=90),
    Scenario(name="an upgrade of pods that are slow", happens=_slow_upgrade, minutes=40),
    Scenario(name="a roll that goes on", happens=_change(tikv={"annotations": {"a": "b"}}), minutes=30),
    Scenario(
        name="a server that crashes",
        happens=_lose("basic-tidb-0"),
        spec={"tidb": {"maxFailoverCount": 0}},
        fires={"TidbClusterNotReady": {}},
    ),
    Scenario(
        name="half of PD",
        happens=_lose("basic-pd-0", "basic-pd-1"),
        fires={
            "TidbClusterUnavailable": {"component": "pd", "reason": "PDQuorumLost"},
            "TidbClusterRefused": {"component": "pd", "reason": "PDQuorumLost"},
        },
    ),
    Scenario(
        name="a spec that is not valid",
        happens=_change(tikv={"evictLeaderTimeout": "soon"}),
        minutes=6,
        fires={"TidbClusterRefused": {"component": "spec", "reason": "InvalidSpec"}},
    ),
    Scenario(
        name="a lost server that is replaced",
        happens=_lose("basic-tidb-0"),
        minutes=10,
        fires={"TidbClusterFailedOver": {"component": "tidb"}},
    ),
    Scenario(
        name="an image that there is not",
        happens=_bad_image,
        spec={"tidb": {"maxFailoverCount": 0}},
        minutes=68,
        fires={"TidbClusterRollIsStuck": {"component": "tidb"}},
    ),
    Scenario(
        name="no certificate for clients",
        happens=_client_certificate,
        spec={"tidb": {"tlsClient": {"enabled": True}}},
        minutes=10,
        fires={"TidbClusterCertificate": {"component": "tidb", "reason": "MissingSecret"}},
    ),
    Scenario(
        name="no certificates",
        spec=_TLS,
        minutes=6,
        fires={"TidbClusterCertificate": {"component": "certificates", "reason": "BadCertificate"}},
    ),
    Scenario(
        name="a month of certificates",
        happens=_certificates(29),
        spec=_TLS,
        minutes=65,
        fires={"TidbClusterCertificateExpiresIn30Days": _EXPIRING},
    ),
    Scenario(
        name="a week of certificates",
        happens=_certificates(6),
        spec=_TLS,
        fires={"TidbClusterCertificateExpiresIn7Days": _EXPIRING},
    ),
    Scenario(
        name="a day of certificates",
        happens=_certificates(0.9),
        spec=_TLS,
        minutes=10,
        fires={"TidbClusterCertificateExpiresIn1Day": _EXPIRING},
    ),
    Scenario(
        name="a PD that never answers",
        happens=_pd_silent,
        minutes=25,
        fires={
            "TidbClusterUnavailable": {"component": "pd", "reason": "PDUnreachable"},
            "TidbClusterNotSynced": {},
            "TidbClusterStageFails": {"component": "pd"},
        },
    ),
    Scenario(name="two operators", processes=2, minutes=5, fires={"TidbClusterTwoOperators": {}}),
)
