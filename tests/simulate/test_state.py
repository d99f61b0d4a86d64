"""The truth that the judge reads: it remembers answers for one version of the storage only."""

from kube.resources import CONFIG_MAPS, LEASES
from simulate.engine.engine import Engine
from simulate.engine.plan import Plan
from simulate.engine.state import State
from simulate.engine.worlds import NAMESPACE
from simulate.run import prepare


def test_the_judge_sees_each_change_at_once() -> None:
    engine = Engine()
    state = State(engine.world)
    assert state.get(CONFIG_MAPS, "one") is None
    _create(engine, "one", "first")
    assert ["first"] == [each["data"]["text"] for each in state.all(CONFIG_MAPS) if each["metadata"]["name"] == "one"]
    engine.admin.patch(CONFIG_MAPS, "one", NAMESPACE, {"data": {"text": "second"}})
    assert "second" == (state.get(CONFIG_MAPS, "one") or {})["data"]["text"]


def test_the_judge_sees_what_a_restored_storage_writes_under_a_version_of_before() -> None:
    engine = Engine()
    state, storage = State(engine.world), engine.world.server.storage
    snapshot = storage.snapshot()
    _create(engine, "one", "lost")
    seen_at = storage.version
    assert state.get(CONFIG_MAPS, "one") is not None
    storage.restore(snapshot, versions_go_back=True)
    _create(engine, "two", "new")
    assert seen_at == storage.version
    assert state.get(CONFIG_MAPS, "one") is None


def test_the_leader_by_health_is_the_leader() -> None:
    engine = prepare(Plan(name="rest"))
    pd = engine.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    led = pd.leader
    assert led is not None
    assert led is pd.leader_with(pd.health())
    for member in pd.members.values():
        if member is not led:
            engine.world.data_plane.crash(NAMESPACE, member.name)
    assert [None, None] == [pd.leader, pd.leader_with(pd.health())]


def _create(engine: Engine, name: str, text: str) -> None:
    tree = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"text": text}}
    engine.admin.create(CONFIG_MAPS, tree, NAMESPACE)


def test_the_renewed_leases_of_nodes_are_nothing_new_to_the_judge() -> None:
    engine = prepare(Plan(name="rest"))
    state, storage = State(engine.world), engine.world.server.storage
    seen, renewed = state.look(), storage.version_of(str(LEASES))
    engine.run(11.0)
    assert storage.version_of(str(LEASES)) > renewed
    assert seen == state.look()
