"""A TidbInitializer waits for its dependencies, gets one Job, and runs again only on request (other-resources.md
2.2)."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, JOBS, NODES, PODS, SECRETS, TIDB_CLUSTERS, TIDB_INITIALIZERS, Resource
from sandbox.kubelet.nodes import NodeSpec
from tests.controllers.simple_world import NAMESPACE, SimpleWorld

NAME = "basic-tidb-initializer"
SPEC: Json = {"image": "tnir/mysqlclient", "cluster": {"name": "basic"}}
SQL = "CREATE DATABASE shop;"


def end(world: SimpleWorld, kind: str = "Complete", said: str = "") -> None:
    """End the Job, with a message from its pod."""
    now = world.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    if said:
        pod = {
            "metadata": {"name": "p", "labels": world.get(JOBS, NAME)["spec"]["template"]["metadata"]["labels"]},
            "spec": {"containers": [{"name": "mysql-client", "image": "i"}]},
        }
        world.admin.create(PODS, pod, NAMESPACE)
        terminated = {"exitCode": 1, "message": said}
        statuses = [{"name": "mysql-client", "state": {"terminated": terminated}}]
        world.admin.patch(PODS, "p", NAMESPACE, {"status": {"containerStatuses": statuses}}, subresource="status")
    first = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    condition = {"status": "True", "reason": "R", "message": "why", "lastTransitionTime": now, "lastProbeTime": now}
    status: Json = {"conditions": [condition | {"type": each} for each in (first, kind)], "startTime": now}
    status |= {"completionTime": now, "succeeded": 1} if kind == "Complete" else {"failed": 1}
    world.admin.patch(JOBS, NAME, NAMESPACE, {"status": status}, subresource="status")
    world.run()


def phase(world: SimpleWorld, name: str = "demo") -> str:
    return str(world.status(name).get("phase") or "")


@pytest.mark.rule("other-resources-2.2")
def test_an_initializer_created_before_its_cluster_is_pending_and_starts_with_it(world: SimpleWorld) -> None:
    world.add(**SPEC, initSql=SQL)
    assert ("Pending", []) == (phase(world), world.names(JOBS))
    message = "waiting for TidbCluster lab/basic, which does not exist; create it, or correct spec.cluster.name"
    assert ("True", "NoSuchCluster", message) == world.condition()
    world.add_cluster()
    world.run()
    assert ("Running", [NAME]) == (phase(world), world.names(JOBS))
    assert "Initializing" == world.condition()[1]
    assert ["init-sql", "init-start-script", "start-script"] == sorted(world.get(CONFIG_MAPS, NAME)["data"])

    end(world)
    status = world.status()
    assert ("Completed", status["startTime"]) == (status["phase"], status["completionTime"])
    assert ["SuccessCriteriaMet", "Complete", "Progressing", "Ready"] == [each["type"] for each in status["conditions"]]
    assert ("True", "Ready") == world.condition("Ready")[:2]
    assert ("Initialized", f"Job {NAME} has completed") in world.events()


@pytest.mark.rule("other-resources-2.2")
def test_a_cluster_without_tidb_is_waited_for(world: SimpleWorld) -> None:
    world.add_cluster(tidb=None)
    world.add(**SPEC)
    assert ("Pending", "NoTiDB", []) == (phase(world), world.condition()[1], world.names(JOBS))


@pytest.mark.parametrize(
    ("spec", "reason", "missing"),
    [
        ({"passwordSecret": "pw"}, "MissingSecret", "Secret pw does not exist"),
        ({"initSqlConfigMap": "sql"}, "MissingConfigMap", "ConfigMap sql does not exist"),
    ],
)
@pytest.mark.rule("other-resources-2.2")
def test_waits_for_everything_that_the_pod_mounts(world: SimpleWorld, spec: Json, reason: str, missing: str) -> None:
    world.add_cluster()
    world.add(**SPEC, **spec)
    _, found, message = world.condition()
    assert (reason, []) == (found, world.names(JOBS))
    assert missing in message
    world.add_secret("pw", root="secret")
    world.admin.create(CONFIG_MAPS, {"metadata": {"name": "sql"}, "data": {"init-sql": SQL}}, NAMESPACE)
    world.run(15)
    assert "Running" == phase(world)


@pytest.mark.rule("other-resources-2.2")
def test_a_second_initializer_of_a_cluster_is_refused(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC)
    world.add("other", **SPEC, initSql=SQL)
    assert ("Running", "Pending") == (phase(world), phase(world, "other"))
    status, reason, message = world.condition(name="other")
    assert ("False", "SecondInitializer") == (status, reason)
    assert "was made by TidbInitializer demo" in message
    assert any(reason == "SecondInitializer" for reason, _ in world.events())
    assert "init-sql" not in world.get(CONFIG_MAPS, NAME)["data"]

    world.admin.delete(TIDB_INITIALIZERS, "demo", NAMESPACE)
    world.run(40)
    assert "Running" == phase(world, "other")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"cluster": {"name": "basic", "namespace": "elsewhere"}},
            'spec.cluster.namespace: "elsewhere": must be the namespace',
        ),
        ({"cluster": {"name": ""}}, "spec.cluster.name"),
        ({"cluster": {"name": "x" * 50}}, "spec.cluster.name"),
        ({"image": ""}, "spec.image"),
    ],
)
@pytest.mark.rule("other-resources-2.2")
def test_problems_of_the_spec_are_reported_by_field(world: SimpleWorld, spec: Json, field: str) -> None:
    world.add_cluster()
    world.add(**SPEC | spec)
    _, reason, message = world.condition()
    assert ("InvalidSpec", []) == (reason, world.names(JOBS))
    assert message.startswith(field)
    assert 1 == len([each for each in world.events() if each[0] == "FailedValidation"])


@pytest.mark.rule("other-resources-2.1")
def test_the_failed_step_is_reported_and_remains(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    end(world, "Failed", "init SQL, statement 1: 1007: Can't create database 'shop'; database exists")
    status, reason, message = world.condition("Ready")
    assert ("Failed", "False", "InitializationFailed") == (phase(world), status, reason)
    assert message.startswith("init SQL, statement 1: 1007: Can't create database 'shop'")
    assert "give annotation tidb.pingcap.com/run another value" in message
    assert any(reason == "InitializationFailed" for reason, _ in world.events())
    world.admin.delete(PODS, "p", NAMESPACE)
    world.restart()
    world.resyncs(1)
    assert ("False", "InitializationFailed", message) == world.condition("Ready")
    assert 1 == len(world.names(JOBS))


@pytest.mark.parametrize("deleted", ["job", "both", "nothing"])
@pytest.mark.rule("other-resources-2.2")
def test_a_finished_initializer_does_not_run_again_by_itself(world: SimpleWorld, deleted: str) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    end(world)
    uid = world.get(JOBS, NAME)["metadata"]["uid"]
    for resource in {"job": [JOBS], "both": [JOBS, CONFIG_MAPS], "nothing": []}[deleted]:
        world.admin.delete(resource, NAME, NAMESPACE, propagation="Background")
    world.run()
    world.restart()
    world.change(initSql="DROP DATABASE shop;")
    world.resyncs(1)
    assert "Completed" == phase(world)
    assert [uid] * (deleted == "nothing") == [world.get(JOBS, each)["metadata"]["uid"] for each in world.names(JOBS)]


@pytest.mark.parametrize("job", ["there", "deleted"])
@pytest.mark.rule("other-resources-2.2")
def test_a_new_value_of_the_annotation_runs_it_again(world: SimpleWorld, job: str) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL, annotations={"tidb.pingcap.com/run": "1"})
    end(world)
    uid = world.get(JOBS, NAME)["metadata"]["uid"]
    if job == "deleted":
        world.admin.delete(JOBS, NAME, NAMESPACE, propagation="Background")
        world.run(5)
    world.change(initSql="CREATE DATABASE more;")
    world.annotate(run="2")
    world.run(10)
    assert "Running" == phase(world)
    again = world.get(JOBS, NAME)["metadata"]
    assert again["uid"] != uid
    assert "2" == again["annotations"]["tidb.pingcap.com/run"]
    assert "CREATE DATABASE more;" == world.get(CONFIG_MAPS, NAME)["data"]["init-sql"]
    assert ["Progressing", "Ready"] == [each["type"] for each in world.status()["conditions"]]
    end(world)
    world.resyncs(1)
    assert ("Completed", again["uid"]) == (phase(world), world.get(JOBS, NAME)["metadata"]["uid"])


@pytest.mark.rule("other-resources-2.2")
def test_a_job_that_was_deleted_before_it_ended_has_failed(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC)
    world.admin.delete(JOBS, NAME, NAMESPACE, propagation="Background")
    world.run(5)
    assert ("Failed", []) == (phase(world), world.names(JOBS))
    assert "the Job was deleted before it ended" in world.condition("Ready")[2]


def image_of_the_job(world: SimpleWorld) -> str:
    return str(world.get(JOBS, NAME)["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.fixture
def with_a_node() -> Iterator[SimpleWorld]:
    """Jobs have pods that run."""
    made = SimpleWorld(TIDB_INITIALIZERS, nodes=[NodeSpec("n", "10.0.0.1", "a")])
    made.add_cluster()
    yield made
    made.stop()


@pytest.mark.rule("R23")
def test_a_job_whose_pod_cannot_start_is_recreated_after_the_spec_is_corrected(with_a_node: SimpleWorld) -> None:
    world = with_a_node
    world.world.faults.image_missing("*:typo")
    world.add(**SPEC | {"image": "tnir/mysqlclient:typo"}, initSql=SQL)
    world.run(20)
    assert world.condition()[2].endswith("container wait: ImagePullBackOff: tnir/mysqlclient:typo")
    world.change(image="tnir/mysqlclient:1", initSql="CREATE DATABASE store;")
    world.run(20)
    assert ("Running", "tnir/mysqlclient:1") == (phase(world), image_of_the_job(world))
    assert "CREATE DATABASE store;" == world.get(CONFIG_MAPS, NAME)["data"]["init-sql"]
    assert 1 == len([name for name in world.names(PODS) if name.startswith(NAME)])


@pytest.mark.rule("other-resources-2.3")
def test_a_config_map_lost_before_the_pod_started_is_recreated(with_a_node: SimpleWorld) -> None:
    world = with_a_node
    world.add(**SPEC | {"nodeSelector": {"disk": "ssd"}}, initSql=SQL, annotations={"tidb.pingcap.com/run": "1"})
    world.annotate(run="2")
    world.admin.delete(CONFIG_MAPS, NAME, NAMESPACE)
    world.run(5)
    made = world.get(CONFIG_MAPS, NAME)
    assert (SQL, "1") == (made["data"]["init-sql"], made["metadata"]["annotations"]["tidb.pingcap.com/run"])
    world.admin.patch(NODES, "n", "", {"metadata": {"labels": {"disk": "ssd"}}})
    world.run(20)
    assert world.condition()[2].endswith(f"kubectl logs job/{NAME} shows what it does")


@pytest.mark.rule("other-resources-2.3")
def test_a_config_map_lost_after_the_end_is_not_recreated(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    end(world)
    world.admin.delete(CONFIG_MAPS, NAME, NAMESPACE)
    world.resyncs(1)
    assert NAME not in world.names(CONFIG_MAPS)


@pytest.mark.rule("R23")
def test_its_pod_is_found_in_a_kubernetes_before_1_27(with_a_node: SimpleWorld) -> None:
    """Older versions know no labels of Jobs that begin with batch.kubernetes.io."""
    world = with_a_node
    world.world.server.webhooks.append(_without_newer_labels)
    world.world.faults.image_missing("*:typo")
    world.add(**SPEC | {"image": "tnir/mysqlclient:typo"}, initSql=SQL)
    world.run(20)
    assert world.condition()[2].endswith("container wait: ImagePullBackOff: tnir/mysqlclient:typo")
    world.change(image="tnir/mysqlclient:1")
    world.run(20)
    assert ("Running", "tnir/mysqlclient:1") == (phase(world), image_of_the_job(world))


def _without_newer_labels(resource: Resource, tree: Json, _: Json | None) -> None:
    if resource == PODS:
        labels = tree["metadata"].get("labels") or {}
        tree["metadata"]["labels"] = {key: text for key, text in labels.items() if "batch.kubernetes.io" not in key}


@pytest.mark.rule("R23")
def test_another_cluster_gets_a_job_only_if_the_first_job_has_run_nothing(with_a_node: SimpleWorld) -> None:
    world = with_a_node
    world.add_cluster("other")
    world.world.faults.image_missing("*:typo")
    world.add(**SPEC | {"image": "tnir/mysqlclient:typo"}, initSql=SQL)
    world.change(image="tnir/mysqlclient:1", cluster={"name": "other"})
    world.run(20)
    assert ("Running", ["other-tidb-initializer"]) == (phase(world), world.names(JOBS))
    world.change(cluster={"name": "basic"})
    world.run(20)
    assert ("Running", ["other-tidb-initializer"]) == (phase(world), world.names(JOBS))
    assert "waiting for Job other-tidb-initializer to end" in world.condition()[2]


@pytest.mark.rule("other-resources-2.2")
def test_another_run_may_be_for_another_cluster(world: SimpleWorld) -> None:
    for name in ("basic", "other"):
        world.add_cluster(name)
    world.add(**SPEC, initSql=SQL)
    end(world)
    world.change(cluster={"name": "other"})
    world.run(20)
    assert ("Completed", [NAME]) == (phase(world), world.names(JOBS))
    world.annotate(run="2")
    world.run(20)
    assert ("Running", ["other-tidb-initializer"]) == (phase(world), world.names(JOBS))


@pytest.mark.rule("R23")
def test_a_job_whose_pod_waits_for_tidb_is_left_alone(with_a_node: SimpleWorld) -> None:
    with_a_node.add(**SPEC, initSql=SQL)
    with_a_node.change(image="tnir/mysqlclient:1")
    with_a_node.resyncs(1)
    assert ("Running", "tnir/mysqlclient") == (phase(with_a_node), image_of_the_job(with_a_node))


@pytest.mark.parametrize("state", [{"running": {}}, {"terminated": {"exitCode": 0}}])
@pytest.mark.rule("R23")
def test_a_job_that_may_have_run_sql_is_left_alone(world: SimpleWorld, state: Json) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    (pod,) = [name for name in world.names(PODS) if name.startswith(NAME)]
    main = {"name": "mysql-client", "image": "i", "restartCount": 0, "ready": False, "imageID": "", "state": state}
    world.admin.patch(PODS, pod, NAMESPACE, {"status": {"containerStatuses": [main]}}, subresource="status")
    world.change(image="tnir/mysqlclient:1")
    world.resyncs(1)
    assert ("Running", "tnir/mysqlclient") == (phase(world), image_of_the_job(world))


@pytest.mark.rule("other-resources-2.2")
def test_a_new_process_finds_the_result_of_a_run_whose_end_was_not_recorded(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC)
    end(world)
    world.admin.patch(TIDB_INITIALIZERS, "demo", NAMESPACE, {"status": {"phase": "Pending", "conditions": None}})
    world.restart()
    world.run(5)
    assert ("Completed", [NAME]) == (phase(world), world.names(JOBS))


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.rule("other-resources-2.2")
def test_deleting_the_cluster_changes_nothing_of_a_finished_run(world: SimpleWorld, gone: bool) -> None:
    world.add_cluster()
    world.add(**SPEC)
    end(world)
    if gone:
        world.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    before = world.status()
    world.resyncs(1)
    assert before == world.status()


def test_names_what_refuses_its_pod(world: SimpleWorld) -> None:
    world.world.faults.creation_refused("pods")
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    world.run(60)
    assert "exceeded quota: sandbox" in world.condition("Ready")[2]


def test_a_running_job_is_followed_after_the_spec_became_invalid(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    world.run(5)
    world.change(image="")
    assert ("Running", "InvalidSpec") == (phase(world), world.condition("Ready")[1])
    end(world)
    assert ("Completed", "InvalidSpec") == (phase(world), world.condition("Ready")[1])


def test_idle_is_free(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add(**SPEC, initSql=SQL)
    world.run(60)
    world.forget()
    world.resyncs()
    assert [] == world.requests()
    end(world)
    world.run(60)
    world.forget()
    world.resyncs()
    assert [] == world.requests()


@pytest.mark.rule("other-resources-2")
def test_its_deletion_removes_its_objects_and_leaves_the_users(world: SimpleWorld) -> None:
    world.add_cluster()
    world.add_secret("pw", root="secret")
    world.add(**SPEC, passwordSecret="pw")
    world.admin.delete(TIDB_INITIALIZERS, "demo", NAMESPACE)
    world.run(5)
    assert ([], ["pw"]) == (world.names(JOBS), world.names(SECRETS))
    assert NAME not in world.names(CONFIG_MAPS)


def test_every_sub_object_may_be_empty(world: SimpleWorld) -> None:
    world.add_cluster()
    given: dict[str, Any] = {key: {} for key in ("podSecurityContext", "resources", "nodeSelector")}
    given |= {key: [] for key in ("imagePullSecrets", "tolerations")}
    given |= dict.fromkeys(("permitHost", "initSqlConfigMap", "passwordSecret", "tlsClientSecretName"), "")
    world.add(**SPEC, **given)
    assert "Running" == phase(world)
