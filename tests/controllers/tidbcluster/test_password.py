"""Root's random first password (objects.md 4.5, lifecycle.md 6.9)."""

import base64
from typing import Any

import pytest
from structlog.testing import capture_logs

from kube.objects import Json
from kube.resources import EVENTS, SECRETS
from member.tidb.password import new_password
from ports.randomness import SecretRandomness
from sandbox.dataplane.pd.cluster import PdCluster
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def applied(world: OperatorWorld, **tidb: Any) -> None:
    cluster = sample("basic")
    cluster["spec"]["tidb"] |= {"initializer": {"createPassword": True}} | tidb
    world.apply(cluster)


def pd(world: OperatorWorld) -> PdCluster:
    found = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert found is not None
    return found


def held(world: OperatorWorld) -> str:
    """The contents of the Secret."""
    return base64.b64decode(world.get(SECRETS, "basic-init")["data"]["root"]).decode()


def is_initialized(world: OperatorWorld) -> bool:
    status: Json = world.cluster().get("status") or {}
    return (status.get("tidb") or {}).get("passwordInitialized") is True


@pytest.mark.rule("4.5")
def test_root_gets_the_secrets_password_and_no_log_or_event_shows_it(world: OperatorWorld) -> None:
    with capture_logs() as logs:
        applied(world)
        world.run_until_ready()
    assert (True, 13) == (is_initialized(world), len(held(world)))
    assert pd(world).users["root"] == held(world)
    secret = world.get(SECRETS, "basic-init")
    assert "app.kubernetes.io/component" not in secret["metadata"]["labels"]
    assert ("Opaque", "TidbCluster") == (secret["type"], secret["metadata"]["ownerReferences"][0]["kind"])
    told = str([*logs, *world.every(EVENTS), world.cluster()])
    assert held(world) not in told


@pytest.mark.rule("4.5")
def test_sets_the_password_once(world: OperatorWorld) -> None:
    applied(world)
    world.run_until_ready()
    before = held(world)
    pd(world).users["root"] = ""
    world.restart()
    world.run(120.0)
    assert (before, "") == (held(world), pd(world).users["root"])


@pytest.mark.slow
@pytest.mark.rule("4.5")
def test_asks_a_tidb_server_directly_if_there_is_no_service(world: OperatorWorld) -> None:
    cluster = sample("basic")
    del cluster["spec"]["tidb"]["service"]
    cluster["spec"]["tidb"]["initializer"] = {"createPassword": True}
    world.apply(cluster)
    world.run_until_ready()
    assert pd(world).users["root"] == held(world)


@pytest.mark.rule("4.5")
def test_uses_an_existing_secret(world: OperatorWorld) -> None:
    data = {"root": base64.b64encode(b"it's \\ mine").decode()}
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "basic-init", "namespace": NAMESPACE},
        "data": data,
    }
    world.admin.create(SECRETS, body, NAMESPACE)
    applied(world)
    world.run_until_ready()
    assert "it's \\ mine" == pd(world).users["root"]


@pytest.mark.rule("4.5")
def test_names_a_secret_that_lacks_the_key(world: OperatorWorld) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "basic-init", "namespace": NAMESPACE}}
    world.admin.create(SECRETS, body, NAMESPACE)
    applied(world)
    world.run_until(lambda: world.reason() == "MissingSecret")
    assert "Secret basic-init exists and has no text under the key root" in world.condition("Progressing")["message"]
    assert world.is_ready()
    patch = {"data": {"root": base64.b64encode(b"now").decode()}}
    world.admin.patch(SECRETS, "basic-init", NAMESPACE, patch)
    world.run_until_ready()
    assert "now" == pd(world).users["root"]


@pytest.mark.slow
@pytest.mark.rule("4.5")
def test_keeps_a_password_that_the_user_has_set(world: OperatorWorld) -> None:
    cluster = sample("basic")
    world.apply(cluster)
    world.run_until_ready()
    pd(world).users["root"] = "theirs"
    world.change(tidb={"initializer": {"createPassword": True}})
    world.run_until(lambda: is_initialized(world))
    assert "theirs" == pd(world).users["root"]
    assert "root has a password already" in world.events("PasswordExists")[0]["message"]


@pytest.mark.slow
@pytest.mark.rule("4.5")
def test_reports_and_retries_a_server_that_does_not_answer(world: OperatorWorld) -> None:
    world.apply(sample("basic"))
    world.run_until_ready()
    world.world.data_plane.hang(NAMESPACE, "basic-tidb-0")
    world.change(tidb={"initializer": {"createPassword": True}})
    world.run(30.0)
    assert not is_initialized(world)
    world.world.data_plane.hang(NAMESPACE, "basic-tidb-0", hung=False)
    world.run_until_ready()
    assert pd(world).users["root"] == held(world)


@pytest.mark.rule("4.5")
def test_a_generated_password_has_the_format_of_v1_6() -> None:
    made = {new_password(SecretRandomness()) for _ in range(50)}
    assert 50 == len(made)
    for password in made:
        digits, letters = sum(each.isdigit() for each in password), sum(each.isalpha() for each in password)
        assert (13, 13, 4, 6) == (len(password), len(set(password)), digits, letters)
        assert not set(password) & set("\\'\"`")


@pytest.mark.rule("4.5")
def test_creates_no_secret_unless_the_spec_requests_it(basic: OperatorWorld) -> None:
    assert not basic.exists(SECRETS, "basic-init")
    assert "passwordInitialized" not in basic.cluster()["status"]["tidb"]
