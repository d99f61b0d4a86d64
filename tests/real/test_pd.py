"""A real PD alone: its members, their quorum and their disks."""

from pathlib import Path

import pytest

from kube.resources import STATEFUL_SETS
from tests.e2e.waiting import eventually, pause
from tests.real.clusters import NAME, NAMESPACE, Place, RealCluster
from tests.real.conftest import Start

pytestmark = [pytest.mark.slow, pytest.mark.needs("pd-server"), pytest.mark.timeout(1200)]

PD = {"replicas": 3, "requests": {"storage": "1Gi"}}
OLD, NEW = "v8.5.5", "v8.5.6"


def names(*ordinals: int) -> set[str]:
    return {f"{NAME}-pd-{ordinal}" for ordinal in ordinals}


def three(place: Place) -> RealCluster:
    """A cluster of three members."""
    cluster = place.create(OLD, pd=PD)
    cluster.waits(lambda: cluster.members() == names(0, 1, 2))
    return cluster


def test_three_members_with_tls_form_a_quorum(place: Place) -> None:
    cluster = place.create(OLD, tls=True, pd=PD)
    cluster.waits(lambda: cluster.members(tls=True) == names(0, 1, 2))


def test_a_version_a_setting_and_the_number_of_members_change_without_the_loss_of_a_quorum(place: Place) -> None:
    cluster = three(place)
    before = cluster.pd("cluster")["id"]
    cluster.change(version=NEW)
    cluster.waits(lambda: cluster.images("pd") == {NEW})
    # 5 is the default
    cluster.change(pd={"config": "lease = 6\n"})
    cluster.waits(lambda: cluster.pd("config").get("lease") == 6)
    for replicas in (5, 3):
        cluster.change(pd={"replicas": replicas})
        cluster.waits(lambda count=replicas: cluster.members() == names(*range(count)))  # type: ignore[misc]
    assert before == cluster.pd("cluster")["id"]


def test_a_member_on_a_lost_machine_is_replaced_and_the_extra_one_leaves_afterwards(place: Place) -> None:
    cluster = three(place)
    heal = cluster.lose_node_of(f"{NAME}-pd-1")
    eventually(lambda: cluster.condition("Ready").get("status") == "False", 60.0, cluster.sentences)
    eventually(lambda: f"{NAME}-pd-3" in cluster.members(), 180.0, cluster.sentences)
    heal()
    cluster.waits(lambda: cluster.members() == names(0, 1, 2))


def test_without_a_quorum_nothing_is_replaced_and_the_members_return(place: Place) -> None:
    cluster = three(place)
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods("pd").items()}
    for pod in ("pd-1", "pd-2"):
        place.world.data_plane.hang(NAMESPACE, f"{NAME}-{pod}")
    eventually(lambda: cluster.condition("Ready").get("status") == "False", 60.0, cluster.sentences)
    # longer than the period of failover
    pause(30.0)
    assert before == {name: pod["metadata"]["uid"] for name, pod in cluster.pods("pd").items()}
    for pod in ("pd-1", "pd-2"):
        place.world.data_plane.hang(NAMESPACE, f"{NAME}-{pod}", hung=False)
    cluster.waits(lambda: cluster.members() == names(0, 1, 2))


def test_a_member_without_its_disk_founds_no_cluster_while_the_others_are_silent(place: Place) -> None:
    cluster = three(place)
    before = cluster.pd("cluster")["id"]
    for pod in ("pd-1", "pd-2"):
        place.world.data_plane.hang(NAMESPACE, f"{NAME}-{pod}")
    place.world.data_plane.lose_disk(place.world.kubelet.claim_uid(NAMESPACE, f"pd-{NAME}-pd-0"))
    place.world.data_plane.crash(NAMESPACE, f"{NAME}-pd-0")
    eventually(lambda: cluster.condition("Ready").get("status") == "False", 60.0, cluster.sentences)
    pause(20.0)
    assert not cluster.pd("cluster")
    for pod in ("pd-1", "pd-2"):
        place.world.data_plane.hang(NAMESPACE, f"{NAME}-{pod}", hung=False)
    eventually(lambda: cluster.pd("cluster", 1).get("id") == before, 60.0, cluster.sentences)


def test_a_suspended_cluster_resumes_with_its_data(place: Place) -> None:
    cluster = three(place)
    before = cluster.pd("cluster")["id"]
    cluster.change(suspendAction={"suspendStatefulSet": True})
    eventually(lambda: not cluster.pods("pd"), 120.0, cluster.sentences)
    assert place.world.client().find(STATEFUL_SETS, f"{NAME}-pd", NAMESPACE) is None
    cluster.change(suspendAction=None)
    cluster.waits(lambda: cluster.members() == names(0, 1, 2))
    assert before == cluster.pd("cluster")["id"]


def test_a_kept_cluster_continues_after_a_stop_of_the_sandbox(start: Start, tmp_path: Path) -> None:
    with start(tmp_path / "keep") as place:
        before = three(place).pd("cluster")["id"]
    with start(tmp_path / "keep") as place:
        cluster = RealCluster(place.world)
        cluster.waits(lambda: cluster.members() == names(0, 1, 2) and cluster.pd("health") != {})
        assert before == cluster.pd("cluster")["id"]
