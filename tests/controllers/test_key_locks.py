"""Two controllers never act for one object at a time (I35)."""

from contextlib import ExitStack

import pytest

from controllers.key_locks import KeyLocks
from controllers.memory import Memory
from kube.resources import BACKUP_SCHEDULES, PODS, SERVICES, TIDB_CLUSTERS
from kube.sharding import Shards, shard_of
from ports.fencing import OpenFence, SoleOwner, is_open


@pytest.mark.rule("I35")
def test_only_one_acts_for_an_object_and_others_are_free() -> None:
    key_locks = KeyLocks(SoleOwner(OpenFence()))
    wanted = [(PODS, "ns/a"), (PODS, "ns/a"), (PODS, "ns/b"), (SERVICES, "ns/a")]
    with ExitStack() as locked:
        assert [True, False, True, True] == [locked.enter_context(key_locks.try_lock(*each)) for each in wanted]


@pytest.mark.rule("I35")
def test_a_caller_without_the_lock_does_not_release_it() -> None:
    key_locks = KeyLocks(SoleOwner(OpenFence()))
    with key_locks.try_lock(PODS, "ns/a"):
        with key_locks.try_lock(PODS, "ns/a"):
            pass
        with key_locks.try_lock(PODS, "ns/a") as still:
            assert not still
    with key_locks.try_lock(PODS, "ns/a") as again:
        assert again


def test_an_object_belongs_to_the_holder_of_the_shard_of_its_key() -> None:
    shards = Shards(3)
    key_locks = KeyLocks(shards)
    shards.open(shard_of("ns/mine", 3), OpenFence())
    assert key_locks.owns(TIDB_CLUSTERS, "ns/mine")
    assert is_open(key_locks.fence_of(TIDB_CLUSTERS, "ns/mine"))
    other = next(f"ns/{n}" for n in range(9) if shard_of(f"ns/{n}", 3) != shard_of("ns/mine", 3))
    assert not key_locks.owns(TIDB_CLUSTERS, other)
    assert not is_open(key_locks.fence_of(TIDB_CLUSTERS, other))


@pytest.mark.rule("CW-11")
def test_a_shard_is_busy_while_a_worker_acts_for_one_of_its_objects() -> None:
    shards = Shards(1)
    with KeyLocks(shards).try_lock(TIDB_CLUSTERS, "ns/a"):
        assert not shards.is_idle(0)
    assert shards.is_idle(0)


def test_schedules_of_a_namespace_go_together_because_they_wait_for_each_other() -> None:
    shards = Shards(8)
    key_locks = KeyLocks(shards)
    shards.open(shard_of("ns", 8), OpenFence())
    assert [True] * 20 == [key_locks.owns(BACKUP_SCHEDULES, f"ns/{number}") for number in range(20)]


def test_the_memory_of_a_key_is_dropped_with_its_shard() -> None:
    mine, other = (next(f"ns/{n}" for n in range(9) if shard_of(f"ns/{n}", 2) == shard) for shard in (0, 1))
    shards = Shards(2)
    shards.open(0, OpenFence())
    key_locks = KeyLocks(shards)
    memory = Memory(list[int])
    for key in (mine, other):
        memory.of(key).append(1)
    memory.keep(lambda key: key_locks.owns(TIDB_CLUSTERS, key))
    assert [[1], []] == [memory.of(mine), memory.of(other)]
