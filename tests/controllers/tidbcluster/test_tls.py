"""A TidbCluster whose components speak TLS, in the real handshakes of the sandbox (objects.md 9)."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import PODS, SECRETS, STATEFUL_SETS, TIDB_CLUSTERS
from member.components import workload_names
from member.context import FailoverSettings
from meta.certificate_needs import all_hosts, needs
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.kubelet.nodes import NodeSpec
from tests.certificates import CLIENT, TODAY, Authority, Pair, secret_name
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_ANOTHER = Authority()
_DAY = timedelta(days=1)
_SUSPENDED = {"suspendAction": {"suspendStatefulSet": True}}
_SIX_NODES = tuple(NodeSpec(f"node-{index}", f"192.168.0.{index + 10}", f"zone-{index % 3}") for index in range(6))
_COMPONENTS = ("pd", "tikv", "tidb", CLIENT)


class TlsWorld:
    """A world with the Secrets of a cluster `basic`, and what users do to these."""

    def __init__(self, world: OperatorWorld) -> None:
        self.world = world
        self.authority = Authority()

    def put(
        self, component: str, pair: Pair | None = None, keys: tuple[str, ...] = ("ca.crt", "tls.crt", "tls.key")
    ) -> None:
        """Make a component's Secret, or replace it."""
        self._put((pair or self.authority.of(component)).secret(secret_name(component), keys))

    def put_all(self, ends: datetime = TODAY + 365 * _DAY) -> None:
        """Every Secret that the cluster needs, with certificates that hold for some time."""
        for each in _COMPONENTS:
            self.put(each, self.authority.of(each, ends=ends))
        self._put(self.authority.of("tidb", ends=ends).secret("basic-tidb-server-secret"))
        self._put(self.authority.pair(ends=ends).secret("basic-tidb-client-secret"))

    def _put(self, secret: Json) -> None:
        if self.world.exists(SECRETS, secret["metadata"]["name"]):
            self.world.admin.delete(SECRETS, secret["metadata"]["name"], NAMESPACE)
        self.world.admin.create(SECRETS, secret, NAMESPACE)

    def apply(self) -> None:
        """A cluster of the usual size."""
        cluster = sample("basic")
        spec = cluster["spec"]
        spec["tlsCluster"] = {"enabled": True}
        spec["pd"]["replicas"], spec["tikv"]["replicas"], spec["tidb"]["replicas"] = 3, 3, 2
        spec["tidb"]["tlsClient"] = {"enabled": True}
        for each in ("pd", "tikv", "tidb"):
            spec[each]["maxFailoverCount"] = 1
        # PD gives a store up after a minute instead of half an hour
        spec["pd"]["config"] = '[schedule]\nmax-store-down-time = "1m"\n'
        self.world.apply(cluster)

    def jump_to(self, day: float) -> None:
        """Move the time of day this many days past the beginning."""
        self.world.clock.jump(TODAY + day * _DAY - self.world.clock.wall())

    def assert_refused(self, said: str) -> None:
        """A sentence stands in what `kubectl get tc` shows as Status, and in the condition."""
        self.world.run_until(lambda: self.world.reason() == "BadCertificate")
        assert said in self.world.condition("Progressing")["message"]
        assert said in self.world.condition("Ready")["message"]
        valid = self.world.condition("CertificatesValid")
        assert ("False", "BadCertificate") == (valid["status"], valid["reason"])
        assert said in valid["message"]

    def images(self) -> set[str]:
        """The images of the containers of PD, TiKV and TiDB."""
        containers = (each for pod in self.world.every(PODS) for each in pod["spec"]["containers"])
        return {each["image"] for each in containers if each["name"] in _COMPONENTS}

    def counts(self) -> tuple[int, int, int]:
        """The numbers of healthy PD members, Up stores and healthy TiDB servers."""
        status = self.world.cluster()["status"]
        healthy = [each["health"] for each in status["pd"]["members"].values()]
        up = [each["state"] == "Up" for each in status["tikv"]["stores"].values()]
        return sum(healthy), sum(up), sum(each["health"] for each in status["tidb"]["members"].values())


@pytest.fixture
def tls(world: OperatorWorld) -> TlsWorld:
    return TlsWorld(world)


@pytest.mark.slow
@pytest.mark.rule("objects-9")
def test_a_tls_cluster_comes_up(tls: TlsWorld) -> None:
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    assert 3 == len(tls.world.cluster()["status"]["pd"]["members"])


@pytest.fixture
def ready(tls: TlsWorld) -> TlsWorld:
    """A Ready cluster; nothing is counted yet."""
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    tls.world.forget()
    return tls


@pytest.mark.slow
@pytest.mark.rule("objects-9")
def test_a_tls_cluster_is_upgraded_in_order(ready: TlsWorld) -> None:
    ready.world.change(version="v8.5.3")
    ready.world.run_until(lambda: ready.world.reason() == "RollingUpdate")
    ready.world.run_until_ready(within=300.0)
    assert {"v8.5.3"} == {image.rpartition(":")[2] for image in ready.images()}


@pytest.mark.slow
@pytest.mark.rule("objects-9")
def test_a_tls_cluster_is_scaled_out_and_in(ready: TlsWorld) -> None:
    ready.world.change(pd={"replicas": 5}, tikv={"replicas": 4}, tidb={"replicas": 3})
    ready.world.run_until(lambda: ready.counts() == (5, 4, 3), within=120.0)
    ready.world.run_until_ready()
    ready.world.change(pd={"replicas": 3}, tikv={"replicas": 3}, tidb={"replicas": 2})
    ready.world.run_until(lambda: ready.counts() == (3, 3, 2), within=300.0)
    ready.world.run_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("objects-9")
def test_replaces_a_lost_pod_of_a_tls_cluster(clock: FakeClock, component: str) -> None:
    settings = replace(SETTINGS, failover=FailoverSettings(pd_period=60.0, tikv_period=60.0, tidb_period=60.0))
    tls = TlsWorld(OperatorWorld(clock=clock, nodes=_SIX_NODES, settings=settings))
    tls.put_all()
    tls.apply()
    tls.world.run_until_ready()
    before = tls.world.replicas(component)
    tls.world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-{component}-1")
    tls.world.run_until(lambda: tls.world.replicas(component) > before, within=600.0)
    tls.world.run_until(lambda: tls.counts()[("pd", "tikv", "tidb").index(component)] >= before, within=600.0)
    tls.world.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("component", "wrong", "said"),
    [
        (
            "pd",
            {"begins": TODAY - 9 * _DAY, "ends": TODAY - _DAY},
            "key tls.crt: expired on 2025-12-31T00:00:00Z; renew it",
        ),
        (
            "tikv",
            {"begins": TODAY + _DAY},
            "key tls.crt: not valid before 2026-01-02T00:00:00Z; issue one that holds now",
        ),
        (CLIENT, {"begins": TODAY - 9 * _DAY, "ends": TODAY - _DAY}, "key tls.crt: expired on 2025-12-31T00:00:00Z"),
        (
            "tidb",
            {"trusts": _ANOTHER.ca},
            "key tls.crt: is not accepted: unable to get local issuer certificate; replace it",
        ),
        (
            CLIENT,
            {"trusts": _ANOTHER.ca},
            "key tls.crt: is not accepted: unable to get local issuer certificate; replace it",
        ),
    ],
)
@pytest.mark.rule("objects-9.1")
def test_names_an_unusable_certificate(tls: TlsWorld, component: str, wrong: dict[str, Any], said: str) -> None:
    tls.put_all()
    tls.put(component, tls.authority.of(component, **wrong))
    tls.apply()
    tls.assert_refused(f"Secret default/{secret_name(component)}, {said}")
    tls.put(component)
    tls.world.run_until_ready(within=120.0)


@pytest.mark.rule("objects-9.1")
def test_names_a_certificate_for_another_name(tls: TlsWorld) -> None:
    tls.put_all()
    tls.put("pd", tls.authority.of("tikv"))
    tls.apply()
    host = "basic-pd-0.basic-pd-peer.default.svc"
    tls.assert_refused(
        f"Secret default/basic-pd-cluster-secret, key tls.crt: does not hold for {host}; issue it for this name, too"
    )


@pytest.mark.rule("objects-9.1")
def test_names_a_certificate_of_another_authority(tls: TlsWorld) -> None:
    tls.put_all()
    tls.put("tikv", _ANOTHER.of("tikv"))
    tls.apply()
    tls.assert_refused(
        "Secret default/basic-tikv-cluster-secret, key tls.crt: signed by an authority that ca.crt of Secret "
        "basic-cluster-client-secret does not hold; "
        "sign both with one authority, or put both into ca.crt of both"
    )


@pytest.mark.parametrize("key", ["ca.crt", "tls.crt", "tls.key"])
@pytest.mark.rule("objects-9.1")
def test_names_a_missing_key(tls: TlsWorld, key: str) -> None:
    tls.put_all()
    tls.put("pd", keys=tuple(each for each in ("ca.crt", "tls.crt", "tls.key") if each != key))
    tls.apply()
    tls.assert_refused(f"Secret default/basic-pd-cluster-secret, key {key}: missing; add it")


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_names_missing_secrets(tls: TlsWorld) -> None:
    tls.apply()
    tls.assert_refused("Secret default/basic-pd-cluster-secret does not exist; create it with ca.crt, tls.crt, tls.key")
    tls.put_all()
    tls.world.run_until_ready(within=120.0)


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_warns_30_7_and_1_days_before_a_certificate_expires(tls: TlsWorld) -> None:
    tls.put_all()
    tls.put("tikv", tls.authority.of("tikv", ends=TODAY + 31 * _DAY))
    tls.apply()
    tls.world.run_until_ready()
    secret = "Secret default/basic-tikv-cluster-secret, key tls.crt"
    valid = tls.world.condition("CertificatesValid")
    assert ("True", "Valid") == (valid["status"], valid["reason"])
    assert f"the first to expire is {secret}, on 2026-02-01T00:00:00Z" == valid["message"]
    for reason, day in (("ExpiresWithin30Days", 2), ("ExpiresWithin7Days", 25), ("ExpiresWithin1Day", 30)):
        tls.jump_to(day)
        tls.world.run(60.0)
        valid = tls.world.condition("CertificatesValid")
        assert ("True", reason) == (valid["status"], valid["reason"])
        said = f"{secret}, expires on 2026-02-01T00:00:00Z; renew what expires"
        assert said == valid["message"]
        assert [said] == [event["message"] for event in tls.world.events(reason)]
        assert tls.world.is_ready()
    tls.jump_to(31)
    tls.world.run(60.0)
    tls.assert_refused(f"{secret}: expired on 2026-02-01T00:00:00Z; renew it")
    tls.put("tikv")
    tls.world.run_until_ready(within=120.0)
    assert "Valid" == tls.world.condition("CertificatesValid")["reason"]


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_names_an_expired_certificate_immediately(tls: TlsWorld) -> None:
    tls.put_all()
    tls.put("tikv", tls.authority.of("tikv", ends=TODAY + _DAY / 48))
    tls.apply()
    tls.world.run_until_ready()
    end = 1800.0
    tls.world.run(end - tls.world.clock.now() - 1.0)
    assert "ExpiresWithin1Day" == tls.world.condition("CertificatesValid")["reason"]
    tls.world.run(5.0)
    assert "BadCertificate" == tls.world.condition("CertificatesValid")["reason"]
    assert "BadCertificate" == tls.world.reason()


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_the_expiry_metric_is_per_secret(tls: TlsWorld) -> None:
    tls.put_all()
    tls.put("pd", tls.authority.of("pd", ends=TODAY + _DAY))
    tls.apply()
    tls.world.run_until_ready()
    labels = {"namespace": "default", "name": "basic", "secret": "basic-pd-cluster-secret"}
    left = tls.world.operator.registry.get_sample_value("tidb_operator_cluster_certificate_expiry_seconds", labels)
    assert 86400 - tls.world.clock.now() == left
    tls.world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    tls.world.run(5.0)
    gone = tls.world.operator.registry.get_sample_value("tidb_operator_cluster_certificate_expiry_seconds", labels)
    assert gone is None


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_uses_renewed_certificates_without_a_restart(ready: TlsWorld) -> None:
    """The certificates of the servers and of the operator's own clients: all the old ones have expired."""
    before = {pod["metadata"]["uid"] for pod in ready.world.every(PODS)}
    ready.put_all(ends=TODAY + 800 * _DAY)
    ready.world.run(400.0)
    ready.jump_to(500)
    ready.world.run(120.0)
    ready.world.run_until_ready()
    assert before == {pod["metadata"]["uid"] for pod in ready.world.every(PODS)}
    assert (3, 3, 2) == ready.counts()


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_an_idle_tls_cluster_reads_its_secrets_rarely(ready: TlsWorld) -> None:
    ready.world.run(100.0)
    ready.world.forget()
    ready.world.run(600.0)
    read = [each for each in ready.world.reads() if "basic-pd-cluster-secret" in each]
    assert 2 == len(read)
    assert [] == ready.world.writes()


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_names_a_deleted_secret_until_it_is_recreated(ready: TlsWorld) -> None:
    ready.world.run(100.0)
    ready.world.admin.delete(SECRETS, "basic-tikv-cluster-secret", NAMESPACE)
    ready.world.run(10.0)
    named = ready.world.condition("CertificatesValid")
    assert ("False", "BadCertificate") == (named["status"], named["reason"])
    assert "Secret default/basic-tikv-cluster-secret does not exist" in named["message"]
    ready.put("tikv")
    ready.world.run(10.0)
    assert "Valid" == ready.world.condition("CertificatesValid")["reason"]


@pytest.mark.slow
@pytest.mark.rule("objects-9.1")
def test_reads_a_constantly_changing_secret_every_three_seconds(ready: TlsWorld) -> None:
    ready.world.run(100.0)
    ready.world.forget()
    for each in range(300):
        annotations = {"metadata": {"annotations": {"turn": str(each)}}}
        ready.world.admin.patch(SECRETS, "basic-pd-cluster-secret", NAMESPACE, annotations)
        ready.world.run(0.1)
    read = [each for each in ready.world.reads() if "basic-pd-cluster-secret" in each]
    assert 5 < len(read) <= 11
    assert [] == ready.world.writes()


@pytest.mark.slow
@pytest.mark.rule("objects-4")
def test_refuses_to_disable_tls_on_a_running_cluster(ready: TlsWorld) -> None:
    ready.world.change(tlsCluster={"enabled": False})
    ready.world.run_until(lambda: ready.world.reason() == "InvalidSpec")
    message = ready.world.condition("Progressing")["message"]
    assert "cannot be changed while PD has more than one member; set it back to true, and scale PD to 1" in message
    ready.world.change(tlsCluster={"enabled": True})
    ready.world.run_until_ready()
    assert [] == [each for each in ready.world.writes() if "statefulsets" in each]


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.rule("R25")
def test_tls_is_switched_where_a_single_pd_runs_and_stores_are_suspended(tls: TlsWorld, enabled: bool) -> None:
    world = tls.world
    tls.put_all()
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 3
    cluster["spec"]["tlsCluster"] = {"enabled": not enabled}
    world.apply(cluster)
    world.run_until_ready()

    world.change(tlsCluster={"enabled": enabled})
    world.run_until(lambda: world.reason() == "InvalidSpec")
    assert "set spec.tikv.suspendAction.suspendStatefulSet to true" in world.condition("Progressing")["message"]
    world.change(tlsCluster={"enabled": not enabled}, tikv=_SUSPENDED, tidb=_SUSPENDED)
    world.run_until(lambda: not world.exists(STATEFUL_SETS, "basic-tikv"))
    world.change(tlsCluster={"enabled": enabled})
    world.run(30.0)
    world.change(tikv={"suspendAction": None}, tidb={"suspendAction": None})
    world.run_until_ready(within=120.0)

    world.change(pd={"replicas": 3})
    world.run_until(lambda: world.reason() == "PeerURLOutdated")
    old, new = ("http", "https") if enabled else ("https", "http")
    url = "://basic-pd-0.basic-pd-peer.default.svc:2380"
    said = world.condition("Progressing")["message"]
    assert f"PD member basic-pd-0 has joined as {old}{url}, where no other can reach it" in said
    assert f"--peer-urls={new}{url}` before PD grows" in said
    assert 1 == world.replicas("pd")
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    (member,) = pd.members.values()
    assert f"etcdctl member update {member.id:x} " in said
    member.peer_url = f"{new}{url}"  # as the command does
    world.run_until(lambda: (world.cluster()["status"]["pd"].get("members") or {}).keys() >= {"basic-pd-2"}, 120.0)
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("R25")
def test_refuses_to_switch_tls_while_pd_is_suspended(ready: TlsWorld) -> None:
    ready.world.change(suspendAction={"suspendStatefulSet": True})
    ready.world.run_until(lambda: not ready.world.exists(STATEFUL_SETS, "basic-pd"))
    ready.world.change(tlsCluster={"enabled": False})
    ready.world.run_until(lambda: ready.world.reason() == "InvalidSpec")
    message = ready.world.condition("Progressing")["message"]
    assert "cannot be changed while PD is suspended" in message
    assert "set it back to true, and resume the cluster" in message


@pytest.mark.slow
@pytest.mark.rule("objects-9")
def test_every_component_starts_upgrades_and_scales_with_tls(tls: TlsWorld) -> None:
    world, cluster = tls.world, sample("everything")
    tc = with_defaults(decode({**cluster, "metadata": {**cluster["metadata"], "namespace": NAMESPACE}}, TidbCluster))
    for name, need in needs(tc).items():
        world.admin.create(SECRETS, tls.authority.pair(*all_hosts(tc, need)).secret(name), NAMESPACE)
    world.apply(cluster)
    world.run_until_ready("everything", within=120.0)
    ready = {name for name in workload_names() if world.exists(STATEFUL_SETS, f"everything-{name}")}
    # full-text search has no TLS (TICI-13)
    assert {name for name in workload_names() if not name.startswith("tici-")} == ready

    world.change("everything", version="v8.5.3")
    world.run_until(lambda: world.reason("everything") != "Done")
    world.run_until_ready("everything", within=900.0)
    world.change("everything", tikv={"replicas": 4}, tidb={"replicas": 1}, ticdc={"replicas": 1})
    world.run_until(lambda: world.reason("everything") != "Done")
    world.run_until_ready("everything", within=300.0)


_OF_CLIENTS = ("basic-tidb-server-secret", "basic-tidb-client-secret")
_OF_CLUSTER = tuple(map(secret_name, _COMPONENTS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wish", "missing"),
    [
        *(pytest.param({"tidb": {"tlsClient": {"enabled": True}}}, each, id=each) for each in _OF_CLIENTS),
        *(
            pytest.param({"tlsCluster": {"enabled": True}}, each, id=each, marks=pytest.mark.thorough)
            for each in _OF_CLUSTER
        ),
    ],
)
@pytest.mark.rule("objects-9.1")
def test_restarts_no_pod_for_tls_before_all_secrets_are_valid(tls: TlsWorld, wish: Json, missing: str) -> None:
    """One member of each component: the change would be refused with several."""
    tls.world.apply(sample("basic"))
    tls.world.run_until_ready()
    tls.put_all()
    lacking = tls.world.admin.get(SECRETS, missing, NAMESPACE).decode()
    tls.world.admin.delete(SECRETS, missing, NAMESPACE)
    before = {pod["metadata"]["uid"] for pod in tls.world.every(PODS)}
    tls.world.change(**wish)
    tls.world.run(30.0)
    assert before == {pod["metadata"]["uid"] for pod in tls.world.every(PODS)}
    tls.assert_refused(f"Secret default/{missing} does not exist")

    tls.world.admin.create(SECRETS, {**lacking, "metadata": {"name": missing}}, NAMESPACE)
    tls.world.run_until(lambda: before != {pod["metadata"]["uid"] for pod in tls.world.every(PODS)}, within=60.0)
    if missing in _OF_CLIENTS:
        tls.world.run_until_ready(within=300.0)
