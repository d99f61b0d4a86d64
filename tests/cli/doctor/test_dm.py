"""The doctor's findings about a DMCluster, whose pods it distinguishes from a TidbCluster's of the same name."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from cli.doctor.reading import CannotLook, read
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS
from ports.clock import FakeClock
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from tests.cli.doctor.looking import findings, reasons
from tests.controllers.dmcluster.dm_world import NAME, DMWorld
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow

_LATER = timedelta(minutes=2)


@pytest.fixture
def dm(clock: FakeClock) -> Iterator[DMWorld]:
    """A Ready DMCluster."""
    world = DMWorld(clock=clock)
    world.bring_up()
    yield world
    world.stop()


def test_a_healthy_dm_cluster_has_no_problem(dm: DMWorld) -> None:
    assert {"QoSNotGuaranteed"} >= reasons(findings(dm, f"dc/{NAME}"))


def test_masters_without_a_quorum_come_first(dm: DMWorld) -> None:
    for ordinal in range(2):
        dm.world.faults.pod_crash_loop(f"{NAMESPACE}/{NAME}-dm-master-{ordinal}")
    dm.run(120.0)
    first, *others = findings(dm, NAME)
    assert ("DMMasterQuorumLost", (f"DMCluster {NAME}",)) == (first.reason, first.objects)
    assert "CrashLoop" in reasons(others)


def test_names_a_worker_that_the_masters_do_not_hear(dm: DMWorld) -> None:
    cut_off = f"{NAME}-dm-worker-1"
    dm.world.faults.network_cut(f"{NAMESPACE}/{NAME}-dm-master-*", f"{NAMESPACE}/{cut_off}")
    dm.run(60.0)
    first, *_ = findings(dm, NAME)
    assert ("MemberUnhealthy", (f"Pod {cut_off}",)) == (first.reason, first.objects)


def test_a_name_of_both_kinds_means_the_tidbcluster_unless_its_kind_is_given(dm: DMWorld) -> None:
    cluster = sample("basic")
    cluster["metadata"]["name"] = NAME
    dm.admin.create(TIDB_CLUSTERS, cluster, NAMESPACE)
    dm.run(30.0)
    dm.world.faults.pod_crash_loop(f"{NAMESPACE}/{NAME}-tidb-0")
    dm.run(120.0)
    assert "CrashLoop" in reasons(findings(dm, NAME, _LATER))
    assert "CrashLoop" in reasons(findings(dm, f"tc/{NAME}", _LATER))
    assert "CrashLoop" not in reasons(findings(dm, f"dc/{NAME}", _LATER))


def test_examines_tidbclusters_if_it_may_not_read_dmclusters(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    world.apply(sample("basic"))
    refusal = Refusal(403, "Forbidden", "dmclusters is forbidden")
    world.world.faults.api_fault(Fault(refusal=refusal), verb="list", resource=str(DM_CLUSTERS))
    (facts,) = read(world.admin, NAMESPACE, ["basic"], clock.wall())
    assert ("basic", {DM_CLUSTERS}) == (facts.name, set(facts.unread))
    with pytest.raises(CannotLook, match="dmclusters is forbidden"):
        read(world.admin, NAMESPACE, ["dc/sync"], clock.wall())
    world.stop()
