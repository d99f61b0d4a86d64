"""Shards over Leases: each key has at most one process that acts for it (docs/adr/0010-shards-by-leases.md)."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from structlog.testing import capture_logs

from kube.client import Client
from kube.leader_election import LeaderElector
from kube.leases import LeaseRecord, LocalLease
from kube.shard_election import ShardElection, ShardElections
from kube.shard_leases import OtherDivisions, lease_name
from kube.sharding import Shards, shard_of
from ports.clock import FakeClock
from ports.fencing import LeaseExpired, OpenFence
from ports.randomness import SeededRandomness
from tests.kube.fakes import ScriptedTransport, status
from tests.kube.fleet import BASE, KEYS, Fleet, Process, TwoWriters

_SERVED = 20.0
"""Seconds within which the keys of a dead process are served again."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with capture_logs():
        yield


def _others_hold(world: Fleet, shard: int, holder: str) -> None:
    """A program without shards takes a Lease, as v1.6 does: it keeps annotations."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/ns/leases/{lease_name(BASE, shard)}"
    there = world.api.objects.get(path, {"metadata": {"name": lease_name(BASE, shard), "namespace": "ns"}, "spec": {}})
    spec = there["spec"] | {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": str(world.now)}
    world.api.put(path, there | {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec})


def _settled(*counts: int, shards: int = 3, seed: int = 1) -> tuple[Fleet, list[Process]]:
    world = Fleet(seed)
    processes = [world.start(f"p{number}", shards) for number in range(*counts or (3,))]
    world.run(40.0)
    return world, processes


def test_an_added_shard_takes_only_its_share_of_the_keys() -> None:
    keys = [f"ns/cluster-{number}" for number in range(3000)]
    sizes = Counter(shard_of(key, 3) for key in keys)
    moved = [key for key in keys if shard_of(key, 3) != shard_of(key, 4)]
    assert {0, 1, 2} == sizes.keys()
    assert max(sizes.values()) < 1.15 * min(sizes.values())
    assert {3} == {shard_of(key, 4) for key in moved}
    assert 600 < len(moved) < 900


def test_the_shard_of_a_key_is_the_same_in_every_version() -> None:
    assert [1, 0, 2, 0] == [shard_of(key, 3) for key in ("ns/a", "ns/b", "ns/c", "ns/d")]


class TestTheFence:
    @pytest.mark.rule("LE-22")
    def test_a_write_is_allowed_for_the_shard_of_the_key_that_the_thread_acts_for(self) -> None:
        shards = Shards(3)
        mine, other = (next(key for key in KEYS if shard_of(key, 3) == shard) for shard in (0, 1))
        shards.open(0, OpenFence())
        with shards.acting_for(mine):
            shards.check()
            with shards.acting_for(other), pytest.raises(LeaseExpired, match="shard 1 of 3"):
                shards.check()
            shards.check()

    @pytest.mark.rule("LE-22")
    def test_a_thread_that_acts_for_no_key_may_not_write(self) -> None:
        shards = Shards(2)
        shards.open(0, OpenFence())
        shards.open(1, OpenFence())
        with pytest.raises(LeaseExpired, match="acts for no key"):
            shards.check()

    @pytest.mark.rule("LE-22")
    def test_the_key_that_a_thread_acts_for_is_its_own(self) -> None:
        shards, refused = Shards(1), []

        def write() -> None:
            try:
                shards.check()
            except LeaseExpired as error:
                refused.append(error)

        shards.open(0, OpenFence())
        with shards.acting_for("ns/a"):
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()
        assert 1 == len(refused)

    @pytest.mark.rule("CW-11")
    def test_a_closed_shard_finishes_running_work_and_starts_none(self) -> None:
        shards = Shards(1)
        shards.open(0, OpenFence())
        with shards.acting_for("ns/a"):
            shards.close(0)
            assert not shards.owns("ns/a")
            assert not shards.is_idle(0)
            shards.check()
        assert shards.is_idle(0)
        shards.forget(0)
        with shards.acting_for("ns/a"), pytest.raises(LeaseExpired):
            shards.check()


class TestBalance:
    def test_one_process_serves_all_shards(self) -> None:
        world, _ = _settled(1)
        assert [] == world.unserved()
        assert [3] == world.sizes()

    @pytest.mark.parametrize(
        ("shards", "processes", "expected"), [(3, 3, [1, 1, 1]), (8, 3, [2, 3, 3]), (2, 4, [0, 0, 1, 1])]
    )
    def test_shards_are_shared_out_evenly(self, shards: int, processes: int, expected: list[int]) -> None:
        world, _ = _settled(processes, shards=shards)
        world.run(60.0)
        assert expected == world.sizes()
        assert [] == world.unserved()

    def test_a_new_process_gets_its_share_and_then_nothing_moves(self) -> None:
        world, _ = _settled(1, shards=6)
        world.start("late", 6)
        world.run(60.0)
        assert [3, 3] == world.sizes()
        before = {path: lease["spec"]["leaseTransitions"] for path, lease in world.api.objects.items()}
        world.run(300.0)
        after = {path: lease["spec"]["leaseTransitions"] for path, lease in world.api.objects.items()}
        assert before == after

    def test_a_released_shard_is_without_a_holder_only_briefly(self) -> None:
        world, _ = _settled(1, shards=2)
        world.start("late", 2)
        longest, since = 0.0, world.now
        for _ in range(600):
            world.run(0.1)
            since = since if world.unserved() else world.now
            longest = max(longest, world.now - since)
        assert [1, 1] == world.sizes()
        assert longest < 5.0

    @pytest.mark.rule("CW-11")
    def test_a_shard_is_released_after_its_last_sync(self) -> None:
        world, (first,) = _settled(1, shards=2)
        held = first.elections.lease
        with held.acting_for(KEYS[0]):
            world.start("late", 2)
            world.run(120.0)
            assert first.may_write(KEYS[0])
        world.run(30.0)
        assert [1, 1] == world.sizes()


class TestAHolderThatGoes:
    @pytest.mark.rule("LE-13")
    def test_the_keys_of_a_killed_process_are_served_within_20_s(self) -> None:
        for seed in range(4):
            world, processes = _settled(seed=seed)
            world.run(seed / 3)
            processes[seed % 3].die()
            assert world.time_until_served(_SERVED) > 5.0

    @pytest.mark.rule("LE-19")
    def test_the_keys_of_a_stopped_process_are_served_immediately(self) -> None:
        world, processes = _settled()
        processes[0].leave()
        assert world.time_until_served(_SERVED) < 4.0

    @pytest.mark.rule("LE-22")
    def test_a_process_suspended_beyond_its_lease_may_not_write_and_ends(self) -> None:
        world, processes = _settled()
        world.pause(processes[1], 40.0)
        world.run(17.0)
        assert set() == processes[1].owned()
        world.run(60.0)
        assert not processes[1].alive
        assert [] == world.unserved()

    @pytest.mark.rule("LE-15")
    def test_a_silent_server_ends_all_processes_without_writes(self) -> None:
        world, processes = _settled()
        world.latency = lambda: 60.0
        world.run(20.0)
        assert not any(each.alive for each in processes)

    @pytest.mark.parametrize("seconds", [-3600.0, 3600.0], ids=["back", "forward"])
    @pytest.mark.rule("LE-11")
    def test_setting_a_clock_neither_moves_nor_keeps_a_shard(self, seconds: float) -> None:
        world, processes = _settled(3)
        held = [each.elections.lease.held for each in processes]
        processes[0].clock.set_by = seconds
        world.run(60.0)
        assert held == [each.elections.lease.held for each in processes]
        processes[0].die()
        assert world.time_until_served(_SERVED)


class TestAnotherDivision:
    def test_processes_with_different_numbers_of_shards_never_act_together(self) -> None:
        world, processes = _settled(2)
        more = [world.start(f"new-{number}", 4) for number in range(2)]
        world.run(120.0)
        assert not any(each.owned() for each in more)
        for each in processes:
            each.leave()
            world.run(7.0)
        assert world.time_until_served(60.0) >= 0.0
        world.run(60.0)
        assert [2, 2] == world.sizes()

    def test_the_holder_of_shard_0_decides_the_number_of_shards(self) -> None:
        world, processes = _settled(3)
        for number in range(3):
            world.start(f"new-{number}", 5)
        world.run(10.0)
        next(each for each in processes if 0 in each.elections.lease.held).leave()
        world.run(90.0)
        assert [] == world.unserved()
        counts = {each.count for each in world.processes if each.owned()}
        assert 1 == len(counts)

    def test_after_all_processes_are_killed_their_leases_expire_first(self) -> None:
        world, processes = _settled(3)
        world.start("new", 2)
        world.run(5.0)
        for each in processes:
            each.die()
        assert world.time_until_served(45.0) > 5.0

    def test_does_nothing_while_v1_6_leads(self) -> None:
        world = Fleet()
        _others_hold(world, 0, "v1.6")
        ours = world.start("ours", 3)
        for _ in range(60):
            world.run(2.0)
            _others_hold(world, 0, "v1.6")
            assert set() == ours.owned()
        world.run(60.0)
        assert set(KEYS) == ours.owned()

    def test_v1_6_that_takes_the_lease_of_shard_0_ends_all_other_processes(self) -> None:
        world, processes = _settled(3)
        next(each for each in processes if 0 in each.elections.lease.held).die()
        while world.now < 200.0:
            _others_hold(world, 0, "v1.6")
            world.run(2.0)
        assert list(KEYS) == world.unserved()


class TestAnUndividedOperator:
    """`--shards=1`: the plain elector, which checks for other divisions before it starts."""

    def test_waits_for_processes_that_divide(self) -> None:
        world, processes = _settled(3)
        for each in processes:
            each.die()
        clock = FakeClock()
        others = OtherDivisions(Client(world.api), "ns", BASE, 1, clock)
        assert 3 == len(others.look())
        clock.step(15.0)
        assert ["Lease tidb-controller-manager has no holder that divides the clusters into 1"] == others.look()

    def test_starts_without_other_processes(self) -> None:
        world = Fleet()
        alone = world.start("alone", 1)
        world.run(1.0)
        others = OtherDivisions(Client(world.api), "ns", BASE, 1, FakeClock())
        assert [] == others.look()
        assert set(KEYS) == alone.owned()

    @pytest.mark.parametrize(("count", "expected"), [(1, 0), (3, 1)])
    def test_without_the_right_to_list_leases_only_an_undivided_operator_starts(
        self, count: int, expected: int
    ) -> None:
        api = ScriptedTransport(lambda _: status(403, "Forbidden"))
        found = OtherDivisions(Client(api), "ns", BASE, count, FakeClock()).look()
        assert expected == len(found)


_RATES = (0.9, 1.0, 1.05)


def _random_life(seed: int) -> Fleet:
    """Two minutes or more of replicas that start, stop, are killed, are suspended, and change their configuration."""
    world, chance = Fleet(seed), SeededRandomness(seed)

    def pick(choices: tuple[float, ...]) -> float:
        return choices[int(chance.uniform(0, len(choices) - 1e-9))]

    names = (f"p{number}" for number in range(1000))
    counts = [1 + int(pick((1, 2, 3, 4)))]
    for _ in range(3):
        world.start(next(names), counts[0], pick(_RATES))
    for _ in range(30):
        world.run(chance.uniform(0.0, 12.0))
        living = [each for each in world.processes if each.alive]
        what = chance.uniform(0.0, 1.0)
        one = living[int(chance.uniform(0, len(living) - 1e-9))] if living else None
        if one is None or (what < 0.25 and len(living) < 5):
            world.start(next(names), counts[-1], pick(_RATES))
        elif what < 0.4:
            one.die()
        elif what < 0.5:
            one.leave()
        elif what < 0.7:
            world.pause(one, chance.uniform(1.0, 40.0))
            one.clock.set_by = chance.uniform(-4000.0, 4000.0)
        elif what < 0.8:
            counts.append(1 + int(pick((1, 2, 3, 4))))
        elif what < 0.9:
            world.latency = partial(chance.uniform, 0.0, chance.uniform(0.0, 8.0))
        else:
            world.latency = lambda: 0.01
    return world


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_key_never_has_two_writers(seed: int) -> None:
    world = _random_life(seed)
    world.latency = lambda: 0.01
    for each in world.processes:
        each.die()
    world.start("last", 3)
    assert world.time_until_served(60.0) >= 0.0


def _no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shards, "_check", lambda _shards, _shard: None)


def _no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalLease, "extend", lambda lease, sent, seconds: _extend(lease, sent, seconds + 5.0))


_extend = LocalLease.extend


def _no_look_at_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherDivisions, "look", lambda _: [])
    monkeypatch.setattr(ShardElections, "is_divided_otherwise", lambda _: False)


def _taken_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_force(elector: LeaderElector, record: LeaseRecord) -> bool:
        return elector._observed_at + record.duration / 2 > elector._clock.now()

    monkeypatch.setattr(LeaderElector, "_is_in_force", in_force)


def _given_while_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def give(election: ShardElection, _delay: float) -> float:
        election.elector.release()
        election.elector.lease.extend(election._fleet.clock.now(), 15.0)
        return 2.0

    monkeypatch.setattr(ShardElection, "_give", give)


def _pause_of_a_slow_one() -> None:
    world = Fleet()
    slow = world.start("slow", 2, rate=0.8)
    world.run(20.0)
    world.start("next", 2)
    world.run(30.0)
    world.pause(slow, 40.0)
    world.run(30.0)


def _change_of_the_number() -> None:
    world, (first, *_) = _settled(2)
    world.start("new", 4)
    world.run(10.0)
    first.leave()
    world.run(30.0)


def _one_more() -> None:
    world, _ = _settled(1, shards=2)
    world.start("late", 2)
    world.run(40.0)


@pytest.mark.parametrize(
    ("defect", "life"),
    [
        (_no_fence, _pause_of_a_slow_one),
        (_no_margin, _pause_of_a_slow_one),
        (_taken_early, _pause_of_a_slow_one),
        (_no_look_at_others, _change_of_the_number),
        (_given_while_busy, _one_more),
    ],
)
def test_the_judge_sees_a_planted_defect(
    monkeypatch: pytest.MonkeyPatch, defect: Callable[[pytest.MonkeyPatch], None], life: Callable[[], None]
) -> None:
    life()
    defect(monkeypatch)
    with pytest.raises(TwoWriters):
        life()
