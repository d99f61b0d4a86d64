"""A real API server asks the operator's webhook at each write: an apply names what is wrong, and with the operator down
nothing is blocked.
"""

import base64
import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller_manager.admission import new_pair
from kube.errors import ApiError
from kube.objects import Json, secret_data
from kube.resources import SECRETS, TIDB_CLUSTERS, VALIDATING_WEBHOOK_CONFIGURATIONS, Resource
from ports.clock import SystemClock
from tests.chart.helm import Helm
from tests.controlplane.processes import BINARIES, free_port
from tests.e2e import operators
from tests.e2e.operators import Operator
from tests.e2e.waiting import eventually
from tests.e2e.worlds import OPERATOR_NAMESPACE, Place, await_ready, sample

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

_ROLES = "rbac.authorization.k8s.io"
_OF_OURS = ("ValidatingWebhookConfiguration", "ClusterRole", "ClusterRoleBinding")


def resource_of(tree: Json) -> Resource:
    group, _, version = tree["apiVersion"].partition("/")
    return Resource(group, version, f"{tree['kind'].lower()}s", tree["kind"], namespaced=False)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def name(real: Place, tmp_path: Path, port: int) -> Iterator[str]:
    """The chart's configuration and rights, with the port of a process in place of the Service."""
    values = {"controllerManager.admissionWebhook.create": True, "controllerManager.admissionWebhook.timeoutSeconds": 5}
    shown = "--show-only=templates/admission-webhook.yaml"
    documents = [each for each in Helm(tmp_path).template(values, shown) if each["kind"] in _OF_OURS]
    (configuration,) = (each for each in documents if each["kind"] == _OF_OURS[0])
    configuration["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/validate"}
    for each in documents:
        real.client.create(resource_of(each), each)
    yield configuration["metadata"]["name"]
    for each in documents:
        real.client.delete(resource_of(each), each["metadata"]["name"])
    with contextlib.suppress(ApiError):
        real.client.delete(SECRETS, configuration["metadata"]["name"], OPERATOR_NAMESPACE)


@pytest.fixture
def serve(real: Place, name: str, port: int) -> Callable[[], contextlib.AbstractContextManager[Operator]]:
    flags = (f"--admission-webhook={name}", f"--admission-webhook-addr=127.0.0.1:{port}", "--resync-duration=1s")
    return lambda: operators.running(real.new_log(), real.environment(), *flags)


def wrong(**tikv: object) -> Json:
    tree = sample("basic")
    tree["spec"]["tikv"] |= tikv or {"evictLeaderTimeout": "soon"}
    return tree


def kubectl(place: Place, namespace: str, tree: Json, *flags: str) -> tuple[int, str]:
    """Exit code and stderr of `kubectl apply`."""
    command = [str(BINARIES / "kubectl"), f"--kubeconfig={place.admin}", f"--namespace={namespace}", "apply", "-f", "-"]
    done = subprocess.run(
        [*command, *flags], input=json.dumps(tree), capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr


def is_asked(place: Place, namespace: str) -> bool:
    """True once the API server asks the webhook, and trusts its certificate."""
    another = wrong() | {"metadata": {"name": "another"}}
    return kubectl(place, namespace, another, "--dry-run=server")[0] != 0


def test_an_apply_is_refused_with_the_sentence_of_the_condition(
    real: Place, serve: Callable[[], contextlib.AbstractContextManager[Operator]]
) -> None:
    client = real.client
    with real.namespace() as namespace, serve() as operator:
        eventually(lambda: is_asked(real, namespace))
        code, said = kubectl(real, namespace, wrong())
        assert 1 == code
        assert 'spec.tikv.evictLeaderTimeout: "soon": must be' in said

        ignored = wrong(image="pingcap/tikv:v1", evictLeaderTimeout="10m", storageClassName=None)
        code, said = kubectl(real, namespace, ignored)
        assert (0, True) == (code, "Warning: FieldsIgnored: spec.tikv.image: " in said), said
        await_ready(real, operator, "basic", namespace)
        # the definition has a status subresource; these are writes of the object itself
        client.patch(TIDB_CLUSTERS, "basic", namespace, {"metadata": {"finalizers": ["example.com/kept"]}})
        assert 1 == kubectl(real, namespace, wrong())[0]
        client.patch(TIDB_CLUSTERS, "basic", namespace, {"metadata": {"finalizers": []}})
        client.delete(TIDB_CLUSTERS, "basic", namespace)


def test_with_the_operator_down_nothing_is_blocked_and_an_invalid_object_can_be_repaired(
    real: Place, serve: Callable[[], contextlib.AbstractContextManager[Operator]]
) -> None:
    bad = wrong()
    bad["spec"]["pd"]["config"] = "a = "
    bad["spec"]["paused"] = True
    with real.namespace() as namespace:
        with serve():
            eventually(lambda: is_asked(real, namespace))
        assert 0 == kubectl(real, namespace, bad)[0]
        with serve():
            eventually(lambda: is_asked(real, namespace))
            del bad["spec"]["pd"]["config"]
            code, said = kubectl(real, namespace, bad)
            assert (0, True) == (code, "Warning: InvalidSpec: spec.tikv.evictLeaderTimeout: " in said), said
            real.client.delete(TIDB_CLUSTERS, "basic", namespace)


def test_a_renewed_certificate_reaches_the_api_server_and_a_running_operator(
    real: Place, name: str, serve: Callable[[], contextlib.AbstractContextManager[Operator]]
) -> None:
    """The Secret has lost its key when the operator starts; renewal by time has its test on a virtual clock."""
    earlier = new_pair(["127.0.0.1"], SystemClock().wall())
    with real.namespace() as namespace:
        with serve():
            eventually(lambda: is_asked(real, namespace))
        old = secret_data(real.client.get(SECRETS, name, OPERATOR_NAMESPACE))
        data = {"ca.crt": earlier.authorities, "tls.crt": earlier.certificate, "tls.key": b"lost"}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        real.client.patch(SECRETS, name, OPERATOR_NAMESPACE, {"data": encoded})
        with serve():
            eventually(lambda: is_asked(real, namespace))
        new = secret_data(real.client.get(SECRETS, name, OPERATOR_NAMESPACE))
        assert new["tls.crt"] not in (old["tls.crt"], earlier.certificate)
        assert new["ca.crt"].endswith(earlier.authorities)
        tree = real.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, name).decode()
        assert new["ca.crt"] == base64.b64decode(tree["webhooks"][0]["clientConfig"]["caBundle"])
