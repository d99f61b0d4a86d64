"""An upgrade of the operator restarts no database: what it would change waits for the user's next change."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member import components
from member.components import workload_names
from member.lifecycle.workload import Workload
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE, OperatorWorld, sample
from tests.takeover.left_by_v16 import Left
from tests.takeover.test_recordings import left_by_v16

pytestmark = pytest.mark.slow

Change = Callable[[Json], object]


def main_container(template: Json) -> Json:
    found: Json = template["spec"]["containers"][-1]
    return found


TEMPLATES: Mapping[str, Change] = {
    "label": lambda template: template["metadata"]["labels"].update({"example.com/new": "yes"}),
    "annotation": lambda template: template["metadata"]["annotations"].update({"example.com/new": "yes"}),
    "variable": lambda template: main_container(template)["env"].append({"name": "NEW", "value": "yes"}),
    "field": lambda template: template["spec"].update(enableServiceLinks=False),
    "volume": lambda template: template["spec"]["volumes"].append({"name": "new", "emptyDir": {}}),
    "sidecar": lambda template: template["spec"]["containers"].insert(0, {"name": "new", "image": "busybox:1"}),
}
"""Additions that another version may make, however the cluster is written."""

ALTERED: Mapping[str, Change] = {
    "default": lambda template: main_container(template).update(securityContext={"privileged": True}),
    "less": lambda template: main_container(template)["env"].pop(),
    "order": lambda template: main_container(template)["ports"].reverse(),
    "command": lambda template: main_container(template).update(command=["/bin/sh", "-x"]),
}
"""Parts that it may change or omit."""


class Version:
    """Run another version of the operator."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._first = {name: components.workload(name) for name in workload_names()}

    def becomes(self, world: OperatorWorld, template: Change, config: str = "", script: str = "") -> None:
        """Start a new process that builds every template, configuration and start script differently."""
        for name, honest in self._first.items():

            def stateful_set(tc: TidbCluster, config_map: str, honest: Workload = honest) -> Json:
                made: Json = honest.stateful_set(tc, config_map)
                template(made["spec"]["template"])
                return made

            def content(tc: TidbCluster, honest: Workload = honest) -> Content:
                made: Content = honest.content(tc)
                data = dict(made.data)
                data[CONFIG_FILE] += config
                data[STARTUP_SCRIPT] += script
                return replace(made, data=data)

            other = replace(honest, stateful_set=stateful_set, content=content)
            self._monkeypatch.setitem(components._WORKLOADS, name, other)
        world.restart()


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> Version:
    return Version(monkeypatch)


@pytest.fixture
def wide(clock: FakeClock) -> Iterator[OperatorWorld]:
    """Three PD, three TiKV, two TiDB, Ready."""
    made = OperatorWorld(clock=clock)
    cluster = sample("basic")
    for name, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][name]["replicas"] = replicas
    made.apply(cluster)
    made.run_until_ready()
    made.forget()
    yield made
    made.stop()


def uids(world: OperatorWorld, component: str = "") -> dict[str, str]:
    found = (pod["metadata"] for pod in world.every(PODS))
    return {meta["name"]: meta["uid"] for meta in found if meta["name"].startswith(f"basic-{component}")}


def workload_writes(world: OperatorWorld) -> list[str]:
    """The writes to StatefulSets and ConfigMaps."""
    return [each for each in world.writes() if " statefulsets.apps " in each or " configmaps " in each]


def contents(taken: Left) -> dict[str, Json]:
    """The requested state of the StatefulSets and the data of the ConfigMaps, without notes."""
    return {name: found.get("data") or found["spec"] for name, found in taken.objects().items()}


def restarted(world: OperatorWorld, before: Mapping[str, str]) -> set[str]:
    """The components with recreated pods."""
    now = uids(world)
    return {name.split("-")[1] for name, uid in before.items() if now.get(name) != uid}


@pytest.mark.rule("2")
def test_a_new_operator_version_writes_nothing(wide: OperatorWorld, version: Version) -> None:
    before = uids(wide)
    for change in (*TEMPLATES.values(), *ALTERED.values()):
        version.becomes(wide, change, config="\n[new]\nkey = 1\n", script="# more\n")
        wide.run(35.0)
        assert ([], before) == (workload_writes(wide), uids(wide))
        assert (True, "Done") == (wide.is_ready(), wide.reason())


@pytest.mark.rule("2")
def test_a_change_without_restart_does_not_apply_the_new_template(wide: OperatorWorld, version: Version) -> None:
    before = uids(wide)
    version.becomes(wide, TEMPLATES["variable"], config="\n[new]\nkey = 1\n")
    wide.change(tikv={"replicas": 4, "maxFailoverCount": 1}, pvReclaimPolicy="Delete")
    wide.run(5.0)
    wide.run_until_ready(within=120.0)
    assert set() == restarted(wide, before) - {"discovery"}
    names = {each["metadata"]["name"] for each in wide.every(CONFIG_MAPS) if "basic-tikv" in each["metadata"]["name"]}
    assert 1 == len(names)


@pytest.mark.parametrize(
    ("change", "rolled"),
    [
        ({"tikv": {"annotations": {"tidb.pingcap.com/restartedAt": "2026-01-01T00:00"}}}, {"tikv"}),
        ({"tidb": {"config": {"log": {"level": "warn"}}}}, {"tidb"}),
        ({"pd": {"startTimeout": 60}}, {"pd"}),
        ({"version": "v8.5.9"}, {"pd", "tikv", "tidb"}),
    ],
    ids=["restart", "configuration", "start script", "version"],
)
@pytest.mark.rule("2")
def test_the_next_restart_by_the_user_applies_the_new_template(
    wide: OperatorWorld, version: Version, change: Json, rolled: set[str]
) -> None:
    before = uids(wide)
    version.becomes(wide, TEMPLATES["variable"])
    wide.change(**change)  # while no operator ran
    wide.run(5.0)
    wide.run_until_ready(within=300.0)
    assert rolled == restarted(wide, before)
    for component in ("pd", "tikv", "tidb"):
        template = wide.get(STATEFUL_SETS, f"basic-{component}")["spec"]["template"]
        has = {"name": "NEW", "value": "yes"} in main_container(template)["env"]
        assert (component in rolled) == has


@pytest.mark.rule("2")
def test_the_status_names_the_changes_that_wait_until_the_last_component_has_them(
    wide: OperatorWorld, version: Version
) -> None:
    assert "ChangesPending" not in str(wide.cluster()["status"])
    version.becomes(wide, TEMPLATES["label"])
    wide.run(5.0)
    change = 'spec.template.metadata.labels.example.com/new: null → "yes"'
    assert f": pd ({change}); tikv ({change}); tidb ({change})" in wide.condition("ChangesPending")["message"]
    wide.run(30.0)
    wide.forget()
    before = wide.cluster()["status"]
    wide.run(65.0)
    assert ([], before) == (wide.writes(), wide.cluster()["status"])
    again = {"annotations": {"tidb.pingcap.com/restartedAt": "2026-01-01T00:00"}}
    wide.change(tikv=again)
    wide.run(5.0)
    wide.run_until_ready(within=300.0)
    assert "tikv" not in wide.condition("ChangesPending")["message"]
    wide.change(pd=again, tidb=again)
    wide.run(5.0)
    wide.run_until_ready(within=300.0)
    assert "False" == wide.condition("ChangesPending")["status"]


@pytest.mark.rule("2")
def test_a_pending_template_survives_a_restart_and_a_second_version(wide: OperatorWorld, version: Version) -> None:
    version.becomes(wide, TEMPLATES["label"])
    wide.run(20.0)
    wide.change(tikv={"labels": {"team": "a"}})
    wide.run(5.0)
    wide.run_until_ready(within=120.0)
    before = uids(wide)
    version.becomes(wide, TEMPLATES["variable"])
    wide.restart()
    wide.run(35.0)
    assert before == uids(wide)


@pytest.mark.parametrize("recording", ["basic", "gcp", "basic-storagevolumes"])
@pytest.mark.rule("3.5")
def test_any_version_takes_over_a_cluster_of_v1_6(recording: str, version: Version, clock: FakeClock) -> None:
    taken = left_by_v16(recording, clock)
    pods, world = taken.pods(), taken.world
    as_built_by_v16 = contents(taken)

    def everything(template: Json) -> None:
        for change in TEMPLATES.values():
            change(template)

    version.becomes(world, everything, script="# more\n")
    world.run(45.0)
    world.stop()
    # each is written once, with notes on its inputs
    assert sorted(set(workload_writes(world))) == sorted(workload_writes(world))
    assert (as_built_by_v16, pods) == (contents(taken), taken.pods())


@pytest.mark.rule("3.5")
def test_rolls_a_users_change_in_a_cluster_of_v1_6(version: Version, clock: FakeClock) -> None:
    taken = left_by_v16("basic", clock)
    before, world = taken.pods(), taken.world
    version.becomes(world, TEMPLATES["label"])
    world.run(20.0)
    spec = {"spec": {"tikv": {"labels": {"team": "a"}}}}
    world.admin.patch(TIDB_CLUSTERS, taken.name, taken.namespace, spec)
    world.run(60.0)
    now = taken.pods()
    world.stop()
    assert {"tikv"} == {name.split("-")[1] for name, uid in before.items() if now.get(name) != uid}


@pytest.mark.rule("2")
def test_new_defaults_of_a_crd_restart_nothing(wide: OperatorWorld) -> None:
    """They are read with the cluster, although no client wrote it: its generation stays."""
    before, generation = uids(wide), wide.cluster()["metadata"]["generation"]
    crd = wide.admin.get(CUSTOM_RESOURCE_DEFINITIONS, "tidbclusters.pingcap.com").decode()
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["dnsPolicy"]["default"] = "ClusterFirstWithHostNet"
    spec["tikv"]["properties"]["terminationGracePeriodSeconds"]["default"] = 90
    wide.admin.replace(CUSTOM_RESOURCE_DEFINITIONS, "tidbclusters.pingcap.com", "", crd)
    # caches see them when the cluster changes, whatever changes in it
    wide.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {"by": "anybody"}}})
    wide.forget()
    wide.run(65.0)
    assert ("ClusterFirstWithHostNet", generation) == (
        wide.cluster()["spec"].get("dnsPolicy"),
        wide.cluster()["metadata"]["generation"],
    )
    assert set() == restarted(wide, before) - {"discovery"}
    assert len(workload_writes(wide)) <= 3  # each StatefulSet notes once how its cluster is read
    wide.change(tikv={"replicas": 4})
    wide.run(5.0)
    wide.run_until_ready(within=120.0)
    assert set() == restarted(wide, before) - {"discovery"}
