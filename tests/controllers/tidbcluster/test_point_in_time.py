"""TiKV keeps its garbage while something is restored to a point in time, and no longer (backup.md 4.4)."""

import pytest

from apis import toml
from apis.consent import ALLOWED_FROM
from controllers.restore import log_range
from kube.objects import Json
from kube.resources import BACKUPS, CONFIG_MAPS, JOBS, NAMESPACES, PODS, RESTORES, SECRETS, STATEFUL_SETS, TIDB_CLUSTERS
from tests.apis.backups import by_br, tree
from tests.operator_world import NAMESPACE, OperatorWorld

pytestmark = pytest.mark.slow


def ratio(world: OperatorWorld, cluster: str = "basic") -> object:
    """The setting `gc.ratio-threshold` in the desired configuration of TiKV's pods; None if it is absent."""
    volumes = world.get(STATEFUL_SETS, f"{cluster}-tikv")["spec"]["template"]["spec"]["volumes"]
    name = next(each["configMap"]["name"] for each in volumes if "configMap" in each)
    tables = toml.loads(world.get(CONFIG_MAPS, name)["data"]["config-file"])
    gc = tables.get("gc", {})
    return gc.get("ratio-threshold") if isinstance(gc, dict) else None


def uids(world: OperatorWorld, component: str) -> set[str]:
    pods = [each["metadata"] for each in world.every(PODS)]
    return {each["uid"] for each in pods if each["name"].startswith(f"basic-{component}-")}


def add_keys(world: OperatorWorld, namespace: str = NAMESPACE) -> None:
    """The Secret that the Job of a Restore needs."""
    world.admin.create(
        SECRETS, {"metadata": {"name": "keys"}, "data": {"access_key": "QQ==", "secret_key": "QQ=="}}, namespace
    )


def restore(world: OperatorWorld, **br: str) -> None:
    spec = by_br(restoreMode="pitr", logRestoreStartTs="7", br={"cluster": "basic", **br})
    body = tree("Restore", spec, name="back", namespace=NAMESPACE)
    world.admin.create(RESTORES, body, NAMESPACE)


def end(world: OperatorWorld, kind: str) -> None:
    status: Json = {"phase": kind, "conditions": [{"type": kind, "status": "True"}]}
    world.admin.patch(RESTORES, "back", NAMESPACE, {"status": status})


@pytest.mark.rule("backup-4.4")
def test_restarts_only_tikv_before_and_after_a_restore(basic: OperatorWorld) -> None:
    basic.change(configUpdateStrategy="RollingUpdate")
    basic.run(5)
    basic.run_until_ready(within=300)
    others = uids(basic, "pd"), uids(basic, "tidb")
    assert ratio(basic) is None
    add_keys(basic)
    restore(basic)  # v1.6 sees only those that name the namespace as well
    before = uids(basic, "tikv")
    basic.run(5)
    basic.run_until_ready(within=600)
    assert -1 == ratio(basic)
    during = uids(basic, "tikv")
    assert before.isdisjoint(during)
    end(basic, "Complete")
    basic.run(5)
    basic.run_until_ready(within=600)
    assert ratio(basic) is None
    assert during.isdisjoint(uids(basic, "tikv"))
    assert others == (uids(basic, "pd"), uids(basic, "tidb"))
    basic.run(60)
    basic.forget()
    basic.run(120)
    assert [] == basic.writes()


def test_stores_that_joined_from_another_cluster_stop_gc_too(basic: OperatorWorld) -> None:
    """They hold parts of the same tables; v1.6 switches it off for the TidbCluster that the Restore names."""
    tikv = {"baseImage": "pingcap/tikv", "replicas": 1, "requests": {"storage": "1Gi"}, "config": {}}
    spec = {"version": "v8.5.2", "cluster": {"name": "basic"}, "configUpdateStrategy": "RollingUpdate", "tikv": tikv}
    body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": "guest"}, "spec": spec}
    basic.change(configUpdateStrategy="RollingUpdate")
    basic.admin.create(TIDB_CLUSTERS, body, NAMESPACE)
    basic.run(60)
    basic.run_until_ready(within=300)
    add_keys(basic)
    restore(basic)
    basic.run(120)
    assert (-1, -1) == (ratio(basic), ratio(basic, "guest"))
    end(basic, "Complete")
    basic.run(120)
    assert (None, None) == (ratio(basic), ratio(basic, "guest"))


@pytest.mark.parametrize("br", [{"clusterNamespace": "elsewhere"}, {"cluster": "other"}])
@pytest.mark.rule("backup-4.4")
def test_a_restore_into_another_cluster_restarts_nothing(basic: OperatorWorld, br: dict[str, str]) -> None:
    restore(basic, **br)
    basic.run(60)
    assert ratio(basic) is None


@pytest.mark.rule("backup-4.4")
def test_a_restore_of_another_namespace_restarts_tikv_only_by_consent(basic: OperatorWorld) -> None:
    """Regardless of its status, which its author can write."""
    basic.change(configUpdateStrategy="RollingUpdate")
    basic.admin.create(NAMESPACES, {"metadata": {"name": "far"}})
    br = {"cluster": "basic", "clusterNamespace": NAMESPACE}
    spec = by_br(restoreMode="pitr", logRestoreStartTs="7", br=br)
    basic.admin.create(RESTORES, tree("Restore", spec, name="back", namespace="far"), "far")
    add_keys(basic, "far")
    waiting = {"type": "RetryFailed", "status": "True", "reason": "WaitingForGCOff"}
    basic.admin.patch(RESTORES, "back", "far", {"status": {"phase": "RetryFailed", "conditions": [waiting]}})
    basic.run(60)
    assert ratio(basic) is None
    basic.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {ALLOWED_FROM: "far"}}})
    basic.run_until(lambda: ratio(basic) == -1, 120)


@pytest.mark.rule("backup-4.4")
def test_an_invalid_restore_restarts_nothing(basic: OperatorWorld) -> None:
    """v1.6 sets the override before it checks, and leaves it on."""
    body = tree("Restore", by_br(restoreMode="pitr"), name="back", namespace=NAMESPACE)
    basic.admin.create(RESTORES, body, NAMESPACE)
    basic.run(60)
    assert "Invalid" == basic.get(RESTORES, "back")["status"]["phase"]
    assert ratio(basic) is None


_LOGS: dict[str, tuple[str, Json]] = {
    "begins later": ("InvalidSpec", {"commitTs": "8"}),
    "was truncated": ("InvalidSpec", {"commitTs": "1", "logSuccessTruncateUntil": "8"}),
    "has not come so far": ("WaitingForLog", {"commitTs": "1", "logCheckpointTs": "6", "phase": "Running"}),
    "ended before": ("InvalidSpec", {"commitTs": "1", "logCheckpointTs": "6", "phase": "Stopped"}),
}


@pytest.fixture
def rolling(basic: OperatorWorld) -> OperatorWorld:
    """The cluster, which restarts TiKV for a change of its configuration."""
    basic.change(configUpdateStrategy="RollingUpdate")
    basic.run(5)
    basic.run_until_ready(within=300)
    return basic


def restarts_nothing_for(reason: str, world: OperatorWorld) -> None:
    before = uids(world, "tikv")
    restore(world)
    world.run(90)
    assert reason in [each.get("reason") for each in world.get(RESTORES, "back")["status"]["conditions"]]
    assert (None, before) == (ratio(world), uids(world, "tikv"))


@pytest.mark.parametrize("what", _LOGS)
@pytest.mark.rule("backup-4.4")
def test_a_restore_outside_its_log_restarts_nothing(rolling: OperatorWorld, what: str) -> None:
    """v1.6 restarts TiKV for it, and back again when the user gives up."""
    reason, status = _LOGS[what]
    add_keys(rolling)
    body = tree("Backup", by_br(backupMode="log"), name="log", namespace=NAMESPACE)
    rolling.admin.create(BACKUPS, body | {"status": {"backupPath": "s3://lab/full", **status}}, NAMESPACE)
    restarts_nothing_for(reason, rolling)


@pytest.mark.planted
def test_reports_a_restore_whose_log_is_not_judged(rolling: OperatorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_range, "obstacles", lambda *_: [])
    with pytest.raises(AssertionError):
        test_a_restore_outside_its_log_restarts_nothing(rolling, "begins later")
    assert -1 == ratio(rolling)


@pytest.mark.rule("backup-4.4")
def test_a_restore_without_its_secret_restarts_nothing(rolling: OperatorWorld) -> None:
    restarts_nothing_for("GetS3SecretFailed", rolling)


@pytest.mark.rule("backup-4.4")
def test_a_restore_whose_job_has_another_owner_restarts_nothing(rolling: OperatorWorld) -> None:
    add_keys(rolling)
    pod = {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}
    job = {"metadata": {"name": "restore-back"}, "spec": {"template": {"spec": pod}}}
    rolling.admin.create(JOBS, job, NAMESPACE)
    restarts_nothing_for("JobNameTaken", rolling)
