"""Secret values appear nowhere: not in the log, in events, in conditions, in metrics."""

import base64
from pathlib import Path

import msgspec
import pytest

from kube.resources import EVENTS, SECRETS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.gate import Gate
from tests.e2e.operators import Operator, reaching
from tests.e2e.waiting import eventually
from tests.e2e.worlds import (
    OPERATOR_NAMESPACE,
    SERVICE_ACCOUNT,
    Place,
    conditions,
    create_cluster,
    sample,
    write_kubeconfig,
)

pytestmark = pytest.mark.slow

_CANARY = "canary-4711"
_LOUD = "--v=10"


def _forms(secret: str) -> list[str]:
    """How a text may leak: plain and in base64, at any offset."""
    return [secret, *(base64.b64encode(b"x" * skip + secret.encode()).decode()[4:-4] for skip in range(3))]


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"token": _CANARY}, id="token"),
        pytest.param({"username": "admin", "password": _CANARY}, id="password", marks=pytest.mark.thorough),
    ],
)
def test_no_output_shows_credentials_or_the_content_of_secrets(
    sandbox: Place, namespace: str, tmp_path: Path, user: dict[str, str]
) -> None:
    client = sandbox.client
    content = base64.b64encode(f"-----{_CANARY}".encode()).decode()
    keys = dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), content)
    for name in ("cluster-client", "pd-cluster", "tikv-cluster", "tidb-cluster"):
        metadata = {"name": f"basic-{name}-secret"}
        client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": keys}, namespace)
    tree = sample("basic")
    tree["spec"]["tlsCluster"] = {"enabled": True}
    with Gate(sandbox.account(OPERATOR_NAMESPACE, SERVICE_ACCOUNT)) as gate:
        kubeconfig = write_kubeconfig(tmp_path, gate.url, **user)
        environment = reaching(kubeconfig, sandbox.proxy, OPERATOR_NAMESPACE, HELM_RELEASE=f"secrets-{len(user)}")
        with operators.running(tmp_path / "log", environment, _LOUD) as operator:
            create_cluster(client, tree, namespace)
            eventually(lambda: _has_read_a_secret(gate), told=lambda: conditions(client, "basic", namespace))
            eventually(lambda: "ca.crt" in operator.said, 10, lambda: conditions(client, "basic", namespace))
            gate.await_quiet()
            metrics = operator.page("/metrics")[1]
    events = [event.decode() for event in client.list_page(EVENTS, namespace).items]
    cluster = client.get(TIDB_CLUSTERS, "basic", namespace).decode()
    for form in _forms(_CANARY):
        assert form not in operator.said
        assert form not in metrics
        assert form not in msgspec.json.encode(events).decode()
        assert form not in msgspec.json.encode(cluster).decode()


def _has_read_a_secret(gate: Gate) -> bool:
    return any((call.resource, call.status) == ("secrets", 200) for call in gate.calls)


@pytest.fixture
def place(sandbox: Place) -> Place:
    """The output does not depend on the world."""
    return sandbox


@pytest.mark.parametrize(
    "kubeconfig",
    [
        f"users:\n- name: a\n  user:\n    token: {_CANARY}: {{\n",
        f"users: [{{name: a, user: {{token: [{_CANARY}]}}}}]",
        f"users: [{{name: a, user: {{client-key-data: {_CANARY}, client-certificate-data: {_CANARY}}}}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n",
        f"clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:1', proxy-url: 'socks4://me:{_CANARY}@h:1'}}}}]\n"
        "users: [{name: a, user: {}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n",
        f"clusters: [{{name: a, cluster: {{server: 'ftp://me:{_CANARY}@h:1'}}}}]\n"
        "users: [{name: a, user: {}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n",
    ],
    ids=["yaml", "type", "key-data", "proxy", "server"],
)
def test_a_broken_kubeconfig_is_not_quoted(tmp_path: Path, kubeconfig: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig)
    operator = Operator(tmp_path / "log", {"KUBECONFIG": str(file)}, _LOUD)
    assert 1 == operator.wait()
    assert str(file) in operator.said
    assert _CANARY not in operator.said
