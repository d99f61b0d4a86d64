"""From a manifest to a serving cluster."""

import itertools
from collections import Counter

import msgspec
import pytest

from kube.resources import CONFIG_MAPS, DEPLOYMENTS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample

STORY = [
    ("True", "pd: ", "PDUnhealthy"),
    ("True", "tikv: ", "TiKVStoreNotUp"),
    ("True", "tidb: ", "TiDBUnhealthy"),
    ("False", "the cluster matches its spec", "Ready"),
]
"""Progressing (status, beginning of the message) and the reason of Ready, in their order."""


def told(world: OperatorWorld, name: str) -> tuple[str, str, str]:
    now = world.condition("Progressing", name)
    stage, colon, _ = now["message"].partition(": ")
    return now["status"], stage + colon, world.condition("Ready", name)["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basic", "advanced"])
@pytest.mark.rule("2.3")
def test_a_sample_becomes_ready_through_the_expected_conditions(world: OperatorWorld, name: str) -> None:
    world.apply(sample(name))
    story = []

    def is_done() -> bool:
        story.append(told(world, name))
        return story[-1] == STORY[-1]

    world.run_until(is_done)

    # a component may be Ready before all members of its predecessor are
    assert [each for each in STORY if each in story] == [each for each, _ in itertools.groupby(story)]
    assert {STORY[0], STORY[3]} <= set(story)
    status = world.cluster(name)["status"]
    assert status["clusterID"]
    assert ["Normal"] * 3 == [status[part]["phase"] for part in ("pd", "tikv", "tidb")]
    assert ["Done"] * 3 == [status[part]["conditions"][0]["reason"] for part in ("pd", "tikv", "tidb")]


@pytest.mark.slow
@pytest.mark.parametrize("others_made_it", [False, True], ids=["ours", "made by another process"])
@pytest.mark.rule("EXP-1")
def test_creates_and_reads_each_object_once_while_the_cache_lags(world: OperatorWorld, others_made_it: bool) -> None:
    """Thirty syncs in thirty seconds, with caches that show none of their writes."""
    if others_made_it:
        world.apply(sample("basic"))
        world.run(1.0)
        world.restart()
        world.operator.look()
        for cache in world.operator.caches.values():
            cache.empty()
    for resource, cache in world.operator.caches.items():
        cache.blind = resource != TIDB_CLUSTERS
    world.forget()
    if not others_made_it:
        world.apply(sample("basic"))
    for _ in range(30):
        world.run(1.0)
        world.operator.resync()

    calls = [entry for entry in world.world.server.audit.recent() if entry.call.user == OPERATOR]
    refused = [entry.call.resource for entry in calls if entry.call.verb == "create" and entry.code == 409]
    by_name = Counter((entry.call.verb, entry.call.resource, entry.call.name) for entry in calls)
    # what decides about pods is read live in each sync
    decisive = ("statefulsets.apps", "configmaps", "tidbclusters.pingcap.com", "")
    reads = {key: count for key, count in by_name.items() if key[0] == "get" and key[1] not in decisive}
    assert {} == {key: count for key, count in reads.items() if count > 1}
    assert {} == {kind: count for kind, count in Counter(refused).items() if count > 3}, "three Services"
    assert others_made_it or not refused


@pytest.mark.slow
@pytest.mark.parametrize("resource", [SERVICES, CONFIG_MAPS, STATEFUL_SETS, DEPLOYMENTS])
@pytest.mark.rule("EXP-1")
def test_recreates_an_object_deleted_before_the_cache_showed_it(world: OperatorWorld, resource: Resource) -> None:
    cache = world.operator.caches[resource]
    world.operator.work()
    cache.blind = True
    world.apply(sample("basic"))
    world.run(1.0)
    names = [each["metadata"]["name"] for each in world.every(resource)]
    for name in names:
        world.admin.delete(resource, name, NAMESPACE)
    cache.blind = False
    cache.cut()
    world.operator.look_again()

    world.run(61.0)

    assert names
    assert set(names) <= {each["metadata"]["name"] for each in world.every(resource)}


@pytest.mark.rule("15")
def test_emits_one_event_per_created_object(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.run_until_ready()

    created = [write for write in world.writes() if write.startswith("create") and "events" not in write]
    told = world.messages("SuccessfulCreate")
    assert 16 == len(created) == len(set(told))
    assert "create Role basic-discovery in TidbCluster basic successful" == told[0]
    assert len(world.events("SuccessfulCreate")) < 6
    # of the volumes, the reclaim policy
    assert {"SuccessfulCreate", "SuccessfulPatch"} == {event["reason"] for event in world.events()}


@pytest.mark.slow
@pytest.mark.rule("I30")
def test_does_not_change_the_stored_spec(world: OperatorWorld) -> None:
    world.apply(sample("advanced"))
    before = world.cluster("advanced")["spec"]
    world.run_until_ready("advanced")
    assert before == world.cluster("advanced")["spec"]


@pytest.mark.rule("2.4")
def test_patches_only_the_status_if_there_is_no_status_subresource(clock: FakeClock) -> None:
    """With v1.6's definition every status write also increases metadata.generation."""
    world = OperatorWorld(clock=clock, status_subresource=False)
    world.apply(sample("basic"))
    before = world.cluster()
    world.run_until_ready()

    after = world.cluster()
    assert before["spec"] == after["spec"]
    assert after["metadata"]["generation"] > before["metadata"]["generation"]
    patches = [
        msgspec.json.decode(entry.call.request.body or b"")
        for entry in world.world.server.audit.recent()
        if (entry.call.user, entry.call.resource) == (OPERATOR, str(TIDB_CLUSTERS)) and entry.call.is_write
    ]
    assert {("metadata", "status")} == {tuple(sorted(patch)) for patch in patches}
    assert {("resourceVersion", "uid")} == {tuple(sorted(patch["metadata"])) for patch in patches}
    world.stop()


@pytest.mark.slow
def test_one_seed_is_one_run() -> None:
    def run() -> list[str]:
        world = OperatorWorld(seed=7)
        world.apply(sample("basic"))
        world.run_until_ready()
        calls = [str(entry.call) for entry in world.world.server.audit.recent()]
        world.stop()
        return calls

    assert run() == run()


@pytest.mark.slow
@pytest.mark.rule("F52", "#3852", "#4054")
def test_every_component_is_optional(basic: OperatorWorld) -> None:
    """Alone, or with a joined cluster that has all of them; a component without a PD says what it waits for."""
    components = ("pd", "tikv", "tidb")
    subsets = [chosen for size in range(3) for chosen in itertools.combinations(components, size)]
    expected = {}
    for joined, chosen in itertools.product((False, True), subsets):
        body = sample("basic")
        name = body["metadata"]["name"] = "-".join(["joined" if joined else "alone", *chosen])
        for left_out in set(components) - set(chosen):
            del body["spec"][left_out]
        if joined:
            body["spec"]["cluster"] = {"name": "basic"}
        basic.apply(body)
        serves = joined or ("pd" in chosen and ("tidb" not in chosen or "tikv" in chosen))
        waits = "PodsNotReady" if "pd" in chosen else "NoPD"
        expected[name] = "Done" if not chosen or serves else waits
    basic.run(60.0)
    assert expected == {name: basic.reason(name) for name in expected}
    assert {name: reason == "Done" for name, reason in expected.items()} == {n: basic.is_ready(n) for n in expected}
    assert (True, "Done") == (basic.is_ready(), basic.reason())


@pytest.mark.slow
@pytest.mark.rule("F52")
def test_corrects_a_changed_update_strategy(basic: OperatorWorld) -> None:
    for component in ("pd", "tikv", "tidb"):
        strategy = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
        basic.admin.patch(STATEFUL_SETS, f"basic-{component}", NAMESPACE, strategy)
    basic.run(35.0)
    basic.run_until_ready()
    found = [basic.get(STATEFUL_SETS, f"basic-{each}")["spec"]["updateStrategy"] for each in ("pd", "tikv", "tidb")]
    assert [{"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}] * 3 == found


@pytest.mark.slow
@pytest.mark.rule("8.1")
def test_a_cluster_with_only_an_image_runs_it_and_is_upgraded_by_its_tag(world: OperatorWorld) -> None:
    cluster = sample("basic")
    del cluster["spec"]["version"]
    for part in ("pd", "tikv", "tidb"):
        del cluster["spec"][part]["baseImage"]
        cluster["spec"][part]["image"] = f"pingcap/{part}:v8.1.0"
    world.apply(cluster)
    world.run_until_ready()
    assert "pingcap/tidb:v8.1.0" == world.cluster()["status"]["tidb"]["image"]

    world.change(tidb={"image": "pingcap/tidb:v8.1.1"})
    world.run_until(lambda: world.cluster()["status"]["tidb"]["image"] == "pingcap/tidb:v8.1.1")
    world.run_until_ready()
