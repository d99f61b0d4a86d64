"""A process that ends, an answer that is lost, an old view: one Job each time (F1, F3, F4)."""

import pytest

from kube.objects import Json
from kube.resources import EVENTS, JOBS, TIDB_INITIALIZERS
from tests.controllers.initializer.test_running import NAME, SPEC, SQL, end
from tests.controllers.simple_faults import ProcessEnded, faulty_runs
from tests.controllers.simple_world import NAMESPACE, SimpleWorld


def jobs_made(world: SimpleWorld) -> int:
    calls = (entry.call for entry in world.world.server.audit.recent())
    return sum((call.verb, call.resource) == ("create", "jobs.batch") for call in calls)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False], ids=["the process ends", "the answer is lost"])
@pytest.mark.rule("F1")
def test_after_any_write_there_is_one_job(ends: bool) -> None:
    worlds: list[SimpleWorld] = []

    def make() -> SimpleWorld:
        worlds.append(SimpleWorld(TIDB_INITIALIZERS))
        worlds[-1].add_cluster()
        return worlds[-1]

    def play(world: SimpleWorld) -> None:
        world.add(**SPEC, initSql=SQL)

    first, *others = list(faulty_runs(make, play, ends=ends))
    assert f"Job/{NAME}" in first
    assert 3 <= len(others)
    assert [_without_uid(first)] * len(others) == [_without_uid(each) for each in others]
    assert {1} == {jobs_made(each) for each in worlds}


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False], ids=["the process ends", "the answer is lost"])
@pytest.mark.rule("F1")
def test_after_any_write_of_another_run_there_is_one_more_job(ends: bool) -> None:
    worlds: list[SimpleWorld] = []

    def make() -> SimpleWorld:
        world = SimpleWorld(TIDB_INITIALIZERS)
        world.add_cluster()
        world.add(**SPEC, initSql=SQL)
        end(world)
        worlds.append(world)
        return world

    def play(world: SimpleWorld) -> None:
        try:
            world.annotate(run="2")
            world.run(30)
        except ProcessEnded:
            world.restart()
        world.run(30)

    first, *others = list(faulty_runs(make, play, ends=ends))
    assert "Running" == first["status"]["phase"]
    assert 4 <= len(others)
    assert [_without_uid(first)] * len(others) == [_without_uid(each) for each in others]
    assert {2} == {jobs_made(each) for each in worlds}


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_a_process_with_an_old_view_makes_no_other_job() -> None:
    world = SimpleWorld(TIDB_INITIALIZERS)
    world.add_cluster()
    before = world.world.server.storage.version
    world.add(**SPEC)
    end(world)
    uid = world.get(JOBS, NAME)["metadata"]["uid"]
    for version in range(before, world.world.server.storage.version):
        world.restart(at=version)
        world.run(3)
        assert ("Completed", uid) == (world.status()["phase"], world.get(JOBS, NAME)["metadata"]["uid"])
    assert 1 == jobs_made(world)
    assert not [each for each in world.admin.list_page(EVENTS, NAMESPACE).items if "deleted" in str(each.decode())]
    world.stop()


def _without_uid(state: Json) -> Json:
    """Without what names the Job's UID, and without fields that count its pods."""
    job = {key: value for key, value in state[f"Job/{NAME}"].items() if key not in ("selector", "template")}
    return state | {f"Job/{NAME}": job, "status": state["status"]["phase"]}
