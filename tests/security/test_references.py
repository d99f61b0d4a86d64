"""A reference into another namespace shows and reaches nothing until its owner, or the administrator, consents."""

import base64
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.resources import BACKUPS, CONFIG_MAPS, DM_CLUSTERS, JOBS, SECRETS, TIDB_CLUSTERS, TIDB_MONITORS
from tests.controllers.simple_faults import faulty_runs
from tests.controllers.simple_world import SimpleWorld
from tests.controllers.tidbmonitor.monitors import CONTAINERS
from tests.security.references import (
    AUTHOR,
    DASHBOARDS,
    EVERYWHERE,
    JOBS_OF,
    JOINING,
    MARK,
    MONITORS,
    OWNER,
    SCHEDULE,
    SELECTING,
    TARGET,
    THERE,
    Case,
    TwoNamespaces,
    of_monitor,
)

pytestmark = pytest.mark.slow

COPYING = (*MONITORS, *DASHBOARDS)
ASSETS = "tidbmonitor-demo-tls-assets"


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[TwoNamespaces]:
    case: Case = request.param if hasattr(request, "param") else MONITORS[0]
    made = TwoNamespaces(case.resource)
    made.add_cluster("own")
    yield made
    made.stop()


def of_each(*cases: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("world", "case"),
        [(case, case) for case in cases],
        indirect=["world"],
        ids=[f"{case.resource.kind}-{case.name}" for case in cases],
    )


@of_each(*COPYING, *JOBS_OF, *JOINING)
def test_shows_nothing_without_consent(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    assert [] == world.leaks()
    assert [] == world.reaching()
    command = f"kubectl -n {OWNER} annotate {case.target.kind.lower()} {TARGET}"
    assert world.is_refused()
    assert f"{command} tidb.pingcap.com/allow-references-from={AUTHOR}" in world.said()


@of_each(*COPYING)
def test_consent_is_given_and_withdrawn(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.consent(case)
    assert [] != world.leaks()
    assert not world.is_refused()
    world.consent(case, "somebody-else")
    assert [] == world.leaks()
    assert world.is_refused()
    world.resyncs(3)
    assert [] == world.leaks()
    world.consent(case, "a-third, *")
    assert [] != world.leaks()


@of_each(*COPYING, *JOBS_OF, *JOINING[:2])
def test_a_refusal_is_the_same_whether_or_not_the_target_exists(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    before = world.said()
    world.admin.delete(case.target, TARGET, OWNER)
    world.resyncs(2)
    assert before == world.said()


@of_each(*COPYING)
@pytest.mark.parametrize("flag", ["allow", f"{AUTHOR}:{OWNER}", f"{AUTHOR}:*", "*:*"])
def test_the_administrator_permits_by_a_flag(world: TwoNamespaces, case: Case, flag: str) -> None:
    world.permit(flag)
    world.refer(case)
    assert [] != world.leaks()
    assert not world.is_refused()


@of_each(*COPYING, *JOBS_OF, *JOINING)
@pytest.mark.parametrize("flag", [f"{OWNER}:{AUTHOR}", f"{AUTHOR}:other", "other:*"])
def test_a_flag_for_other_namespaces_permits_nothing(world: TwoNamespaces, case: Case, flag: str) -> None:
    world.permit(flag)
    world.refer(case)
    assert [] == world.leaks()
    assert world.is_refused()


@of_each(*MONITORS)
def test_running_objects_continue_without_consent_and_are_read_no_more(world: TwoNamespaces, case: Case) -> None:
    """As after v1.6, which requires no consent: everything that a monitor has stays."""
    world.permit("allow")
    world.refer(case)
    before = [each.raw for each in world.written() if each.kind in ("Secret", "ConfigMap", "StatefulSet")]
    world.permit("consent")
    world.resyncs(3)
    assert before == [each.raw for each in world.written() if each.kind in ("Secret", "ConfigMap", "StatefulSet")]
    assert f"tidb.pingcap.com/allow-references-from={AUTHOR}" in world.said()

    world.admin.patch(SECRETS, f"{TARGET}-cluster-client-secret", OWNER, {"data": {"tls.key": "bmV3"}})
    world.admin.patch(CONFIG_MAPS, TARGET, OWNER, {"data": {"prometheus-config": "bmV3"}})
    world.change(externalLabels={"a": "b"})
    world.resyncs(2)
    assert not any(b"bmV3" in each.raw for each in world.written())

    world.consent(case)
    world.resyncs(2)
    assert not world.is_refused()
    world.consent(case, None)
    assert [] == world.leaks()


def test_only_what_prometheus_needs_of_a_certificate_is_copied(world: TwoNamespaces) -> None:
    world.refer(MONITORS[0])
    world.consent(MONITORS[0])
    files = {f"secret_{OWNER}_{TARGET}-cluster-client-secret_{key}" for key in ("ca.crt", "tls.crt", "tls.key")}
    assert files == world.get(SECRETS, ASSETS)["data"].keys()


def test_a_monitor_watches_its_own_clusters_while_another_one_does_not_consent(world: TwoNamespaces) -> None:
    world.refer(of_monitor("", spec={"clusters": [{"name": "own"}, THERE]}))
    config = world.get(CONFIG_MAPS, "demo-monitor")["data"]["prometheus.yml"]
    assert (True, False) == (f"{AUTHOR}-own-tikv" in config, TARGET in config)


@of_each(EVERYWHERE)
def test_rights_in_all_namespaces_are_the_administrators_to_give(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    assert [] == world.rights_everywhere()
    assert "demo-monitor" in world.names(CONFIG_MAPS)
    assert f"-cross-namespace-references={AUTHOR}:*" in world.said()
    world.permit(f"{AUTHOR}:*")
    assert 2 == len(world.rights_everywhere())
    assert not world.is_refused()
    world.permit(f"{AUTHOR}:{OWNER}")
    assert [] == world.rights_everywhere()
    assert world.is_refused()


@of_each(EVERYWHERE)
def test_rights_in_all_namespaces_that_v16_gave_stay(world: TwoNamespaces, case: Case) -> None:
    world.permit("allow")
    world.refer(case)
    world.permit("consent")
    world.resyncs(2)
    assert 2 == len(world.rights_everywhere())
    assert f"-cross-namespace-references={AUTHOR}:*" in world.said()


@of_each(SELECTING)
def test_a_selector_shows_no_cluster_that_does_not_consent(world: TwoNamespaces, case: Case) -> None:
    world.permit("allow")
    world.refer(replace(case, spec=case.spec | {"clusters": [{"name": "own"}]}))
    world.permit("consent")
    world.annotate(**{"cluster-selector": "team=a"})
    world.resyncs(2)
    assert [] == world.leaks()
    assert "spec.clusterScoped" in world.said()
    assert TARGET not in world.said()
    world.consent(case)
    assert [] != world.leaks()


def test_a_monitor_of_v16_keeps_its_clusters_of_other_namespaces_through_edits(world: TwoNamespaces) -> None:
    world.permit("allow")
    world.refer(of_monitor("", spec={"clusters": [{"name": "own"}, THERE]}))
    before = world.get(SECRETS, ASSETS)["data"]
    world.permit("consent")
    world.change(externalLabels={"region": "north"})
    config = world.get(CONFIG_MAPS, "demo-monitor")["data"]["prometheus.yml"]
    assert (True, True) == ("region: north" in config, f"job_name: {OWNER}-{TARGET}-tikv" in config)
    assert before == world.get(SECRETS, ASSETS)["data"]


@of_each(*MONITORS[:2])
def test_a_certificate_is_deleted_with_the_consent_even_if_the_author_lacks_more(
    world: TwoNamespaces, case: Case
) -> None:
    world.refer(case)
    world.consent(case)
    assert [] != world.leaks()
    auth = {each: {"name": "missing", "key": each} for each in ("username", "password")}
    endpoint = {"url": "https://mimir.example.com/push", "basicAuth": auth}
    world.change(prometheus=CONTAINERS["prometheus"] | {"remoteWrite": [endpoint]})
    world.consent(case, None)
    assert "ReferenceMissing" in world.said()
    assert [] == world.leaks()


@of_each(MONITORS[2])
def test_a_configuration_whose_consent_was_withdrawn_follows_the_spec_again(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.consent(case)
    world.consent(case, None)
    world.resyncs(2)
    world.change(externalLabels={"region": "north"})
    assert "region: north" in world.get(CONFIG_MAPS, "demo-monitor")["data"]["prometheus.yml"]


def test_consent_of_one_cluster_is_none_of_another(world: TwoNamespaces) -> None:
    body = world.admin.get(TIDB_CLUSTERS, TARGET, OWNER).decode()
    other = {"metadata": {"name": "other"}, "spec": body["spec"] | {"tlsCluster": {"enabled": False}}}
    world.admin.create(TIDB_CLUSTERS, {"apiVersion": body["apiVersion"], "kind": body["kind"]} | other, OWNER)
    world.refer(MONITORS[0])
    assert TIDB_MONITORS == world.resource
    world.consent(MONITORS[0])
    world.change(clusters=[{"name": "other", "namespace": OWNER}], **CONTAINERS)
    assert [] == world.leaks()
    assert f"annotate tidbcluster other tidb.pingcap.com/allow-references-from={AUTHOR}" in world.said()


@of_each(*DASHBOARDS)
def test_a_dashboard_that_runs_when_consent_becomes_needed_runs_on(world: TwoNamespaces, case: Case) -> None:
    world.permit("allow")
    world.refer(case)
    before = [each.raw for each in world.written() if each.kind in ("Secret", "ConfigMap", "StatefulSet")]
    world.permit("consent")
    world.admin.patch(SECRETS, f"{TARGET}-cluster-client-secret", OWNER, {"data": {"tls.key": "bmV3"}})
    world.resyncs(3)
    assert before == [each.raw for each in world.written() if each.kind in ("Secret", "ConfigMap", "StatefulSet")]
    assert f"tidb.pingcap.com/allow-references-from={AUTHOR}" in world.said()


@of_each(*DASHBOARDS)
def test_a_dashboard_of_a_cluster_that_withdraws_its_consent_is_deleted(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.consent(case)
    assert 1 == len(world.reaching())
    world.consent(case, None)
    assert [] == world.reaching()
    assert any(reason == "ConsentWithdrawn" for reason, _ in world.events())


@of_each(*DASHBOARDS)
def test_a_certificate_is_deleted_with_its_reference(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.consent(case)
    assert [] != world.leaks()
    world.change(clusters=[{"name": "own"}])
    world.resyncs(1)
    assert [] == world.leaks()


@of_each(*COPYING[:2], *DASHBOARDS)
def test_a_certificate_goes_with_the_reference_even_if_the_next_cluster_is_missing(
    world: TwoNamespaces, case: Case
) -> None:
    world.refer(case)
    world.consent(case)
    assert [] != world.leaks()
    missing = [{"name": "missing"}]
    world.change(**({"dm": {"clusters": missing}} if case.target == DM_CLUSTERS else {"clusters": missing}))
    assert [] == world.leaks()


@of_each(*MONITORS[:2])
def test_a_certificate_of_v16_goes_with_the_reference(world: TwoNamespaces, case: Case) -> None:
    world.permit("allow")
    world.refer(case)
    world.permit("consent")
    assert [] != world.leaks()
    missing = [{"name": "missing"}]
    world.change(**({"dm": {"clusters": missing}} if case.target == DM_CLUSTERS else {"clusters": missing}))
    assert [] == world.leaks()


@of_each(*JOBS_OF)
def test_a_job_for_another_namespace_waits_for_consent_alone(world: TwoNamespaces, case: Case) -> None:
    """The next wait is for the cluster itself, which is not Ready here; a CompactBackup needs nothing more."""
    world.refer(case)
    world.consent(case)
    world.run(15.0)
    assert not world.is_refused()
    assert world.names(JOBS) or f"TidbCluster {OWNER}/{TARGET}" in world.said() or "WaitingForLog" in world.said()


@of_each(*JOINING)
def test_a_cluster_joins_another_one_by_consent(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.consent(case)
    assert world.reaching() in (["demo-pd"], ["demo-tikv"])
    world.run(5.0)
    assert not world.is_refused()


@of_each(*JOINING)
def test_a_joined_cluster_is_left_alone_when_the_consent_is_withdrawn(world: TwoNamespaces, case: Case) -> None:
    """A database is not stopped by an annotation; nothing of it is changed until there is consent again."""
    world.permit("allow")
    world.refer(case)
    before = [each.raw for each in world.written() if each.kind in ("StatefulSet", "ConfigMap", "Service")]
    world.permit("consent")
    world.change(version="v8.5.3")
    world.resyncs(2)
    assert before == [each.raw for each in world.written() if each.kind in ("StatefulSet", "ConfigMap", "Service")]
    assert world.is_refused()


@of_each(JOINING[0])
def test_a_cluster_in_another_kubernetes_needs_no_consent(world: TwoNamespaces, case: Case) -> None:
    spec = case.spec | {"cluster": {"name": "far", "namespace": "there", "clusterDomain": "k8s.example.com"}}
    world.refer(replace(case, spec=spec))
    assert not world.is_refused()


@of_each(JOINING[0])
def test_a_domain_is_no_way_around_the_consent_of_a_cluster_that_is_here(world: TwoNamespaces, case: Case) -> None:
    world.refer(replace(case, spec=case.spec | {"cluster": THERE | {"clusterDomain": "cluster.local"}}))
    assert world.is_refused()
    assert [] == world.reaching()


@of_each(SCHEDULE)
def test_objects_of_a_schedule_need_consent_too(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.run(70.0)
    (made, *_) = world.admin.list_page(BACKUPS, AUTHOR).items
    (condition,) = made.decode()["status"]["conditions"]
    assert ("Waiting", "ReferenceNotAllowed") == (condition["type"], condition["reason"])
    assert [] == world.leaks() + world.names(JOBS)


@pytest.mark.parametrize("ends", [True, False], ids=["a process ends", "an answer is lost"])
@pytest.mark.parametrize("case", [MONITORS[0], MONITORS[2], *DASHBOARDS], ids=lambda case: f"{case.resource.kind}")
def test_a_withdrawn_consent_removes_everything_even_if_writes_fail(case: Case, ends: bool) -> None:
    def make() -> SimpleWorld:
        world = TwoNamespaces(case.resource)
        world.add_cluster("own")
        world.refer(case)
        world.consent(case)
        assert [] != world.leaks()
        return world

    def play(world: SimpleWorld) -> None:
        assert isinstance(world, TwoNamespaces)
        world.consent(case, None)
        world.run(90.0)

    first, *others = list(faulty_runs(make, play, ends=ends))
    assert len(others) >= 2
    marks = (MARK, base64.b64encode(MARK.encode()).decode())
    assert [] == [state for state in (first, *others) if any(mark in str(state) for mark in marks)]


@of_each(*COPYING, *JOBS_OF, *JOINING)
def test_a_wait_for_consent_writes_nothing(world: TwoNamespaces, case: Case) -> None:
    world.refer(case)
    world.resyncs(2)
    world.forget()
    world.resyncs(3)
    assert {each.partition(" ")[0] for each in world.requests()} <= {"get", "list"}


def test_a_condition_names_twenty_references_at_most(world: TwoNamespaces) -> None:
    clusters = [{"name": f"vault-{number}", "namespace": OWNER} for number in range(2_000)]
    world.refer(of_monitor("", spec={"clusters": clusters}))
    assert "; and 1980 more" in world.said()
    assert len(world.said()) < 20_000
