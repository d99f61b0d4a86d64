"""Two processes that write one status do not chase each other."""

import msgspec

from controllers.tidbcluster.rivals import PAUSE, Rivals
from kube.objects import Json, Object
from ports.clock import FakeClock


def _cluster(status: Json) -> Object:
    tree = {"metadata": {"namespace": "default", "name": "basic", "uid": "1"}, "status": status}
    return Object(msgspec.json.encode(tree), "pingcap.com/v1alpha1", "TidbCluster")


def test_FP9_what_somebody_else_has_written_over_ours_is_not_acted_on_at_once() -> None:
    clock = FakeClock()
    rivals = Rivals(clock)
    ours, theirs = _cluster({"clusterID": "1"}), _cluster({"clusterID": "2"})
    assert 0 == rivals.pause(theirs)
    rivals.wrote(ours)
    assert (0, PAUSE) == (rivals.pause(ours), rivals.pause(theirs))
    clock.step(PAUSE / 2)
    assert PAUSE / 2 == rivals.pause(theirs)
    clock.step(PAUSE / 2)
    assert 0 == rivals.pause(theirs)
    rivals.wrote(ours)
    rivals.forget(ours.key)
    assert 0 == rivals.pause(theirs)


def test_what_our_pod_controller_writes_is_ours() -> None:
    rivals = Rivals(FakeClock())
    rivals.wrote(_cluster({"tikv": {"synced": True}}))

    assert 0 == rivals.pause(_cluster({"tikv": {"synced": True, "evictLeader": {"basic-tikv-0": {}}}}))
