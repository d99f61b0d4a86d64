"""The process in front of an API server, called over HTTP and HTTPS (scheduler-deployment.md 2.2)."""

import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import urllib3
from prometheus_client import CollectorRegistry, generate_latest

from controller_manager.features import FeatureGates
from ports.randomness import SystemRandomness
from ports.transport import Request
from scheduler.app import App, make_handler
from scheduler.extender import FAIL
from scheduler.metrics import Metrics
from scheduler.options import Options, parse_options
from tests.controlplane.processes import free_port
from tests.scheduler.worlds import ExtenderWorld, body, pod


@pytest.mark.rule("scheduler-deployment-2.2")
def test_accepts_the_flags_of_v1_6_and_its_own() -> None:
    assert Options() == parse_options([], {}, "1")
    given = ["-port", "1", "-features=StableScheduling=false", "-v=4", "-logtostderr=true", "--metrics-addr=:1"]
    expected = Options(port=1, features=FeatureGates(stable_scheduling=False), v=4, metrics_addr=":1")
    assert expected == parse_options(given, {}, "1")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["-tls-cert-file=a"], "--tls-cert-file and --tls-private-key-file belong together"),
        (["-client-ca-file=a"], "--client-ca-file needs --tls-cert-file"),
        (["-port=x"], "'x' is not a non-negative integer"),
    ],
)
@pytest.mark.rule("scheduler-deployment-2.2")
def test_names_an_impossible_setting(given: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options(given, {}, "1")
    assert why in capsys.readouterr().err


@pytest.fixture
def world() -> ExtenderWorld:
    return ExtenderWorld()


def app(world: ExtenderWorld) -> App:
    return App(world.extender, world.clock)


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        (Request("GET", "/scheduler/filter"), 405, "GET is not supported; POST is"),
        (Request("POST", "/filter"), 404, "try one of /scheduler/filter, /scheduler/preempt, /scheduler/prioritize"),
        (Request("POST", "/scheduler/filter", {}, b"x"), 400, "unable to read request body: the request: "),
        (
            Request("POST", "/scheduler/preempt", {}, body({"Pod": pod("db-pd-0", annotations={FAIL: "1"})})),
            500,
            "unable to preempt nodes: pod db-pd-0 had an intentional failure injected",
        ),
    ],
)
@pytest.mark.rule("scheduler-deployment-2.3")
def test_answers_with_errors(world: ExtenderWorld, request_: Request, status: int, said: str) -> None:
    answer = app(world).handle(request_)
    told = json.loads(answer.body)
    assert (status, status) == (answer.status, told["Code"])
    assert told["Message"].startswith(said)


@pytest.mark.rule("scheduler-deployment-2.3")
def test_an_error_appears_in_the_event_of_the_pod(world: ExtenderWorld) -> None:
    tree = pod("db-pd-0", annotations={FAIL: "1"})
    answer = app(world).handle(Request("POST", "/scheduler/filter", {}, body({"Pod": tree, "NodeNames": ["a"]})))
    assert (200, []) == (answer.status, json.loads(answer.body)["NodeNames"])
    assert json.loads(answer.body)["Error"].startswith("pod db-pd-0 had an intentional failure injected")


def test_a_client_chooses_no_label_of_a_metric(world: ExtenderWorld) -> None:
    registry = CollectorRegistry()
    served = App(world.extender, world.clock, Metrics(registry))
    for component in ("pd", "said-by-a-client"):
        tree = pod("db-x-0", component, annotations={FAIL: "1"})
        served.handle(Request("POST", "/scheduler/filter", {}, body({"Pod": tree, "NodeNames": []})))
    for name in ("filter", "said-by-a-client"):
        served.handle(Request("SAID-BY-A-CLIENT", f"/scheduler/{name}", {}, b""))
    page = generate_latest(registry).decode()
    assert "said-by-a-client" not in page.lower()
    assert 'tidb_scheduler_refused_pods_total{component="pd"} 1.0' in page
    assert 'tidb_scheduler_refused_pods_total{component=""} 1.0' in page


@pytest.mark.rule("scheduler-deployment-2.3")
def test_the_handler_sends_its_events(world: ExtenderWorld) -> None:
    world.add("db-pd-0", on="a")
    world.add("db-pd-1")
    handle = make_handler(world.world.transport(), world.clock, SystemRandomness())
    asked = body({"Pod": pod("db-pd-1"), "NodeNames": ["a"]})
    assert 200 == handle(Request("POST", "/scheduler/filter", {}, asked)).status
    event = json.loads(world.admin.request("GET", "/api/v1/namespaces/default/events").body)["items"][0]
    assert ("HAScheduling", "tidb-scheduler") == (event["reason"], event["source"]["component"])


@pytest.fixture
def served(world: ExtenderWorld, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig for the world over HTTP."""
    world.world.start()
    yield world.world.write_kubeconfig(tmp_path)
    world.world.stop()


@pytest.mark.slow
@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.rule("scheduler-deployment-2.2")
def test_the_process_serves_until_a_signal(world: ExtenderWorld, served: Path, tmp_path: Path, secure: bool) -> None:
    world.add("db-pd-0")
    port, health = free_port(), free_port()
    flags = [f"-kubeconfig={served}", f"-port={port}", f"-metrics-addr=127.0.0.1:{health}"]
    authority = trustme.CA()
    if secure:
        _write_certificate(authority, tmp_path)
        flags += [f"-tls-cert-file={tmp_path / 'tls.crt'}", f"-tls-private-key-file={tmp_path / 'tls.key'}"]
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    command = [sys.executable, "-m", "scheduler", *flags]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
        urllib3.PoolManager(ca_certs=str(tmp_path / "ca.crt"), timeout=10.0) as pool,
    ):
        assert process.stderr is not None
        while 'serving"' not in (line := process.stderr.readline()) or "tls" not in line:
            assert line, "the process has ended"
        url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/scheduler/filter"
        answer = pool.request("POST", url, body=body({"Pod": pod("db-pd-0"), "NodeNames": ["a", "b"]})).json()
        metrics = pool.request("GET", f"http://127.0.0.1:{health}/metrics").data.decode()
        if secure:
            _renew(authority, tmp_path, port)
        process.send_signal(signal.SIGTERM)
        assert (["a", "b"], 0) == (answer["NodeNames"], process.wait(10))
    assert 'tidb_scheduler_requests_total{code="200",verb="filter"} 1.0' in metrics


def _renew(authority: trustme.CA, directory: Path, port: int) -> None:
    """Check that the process uses a renewed certificate, and the old one while certificate and key do not match."""
    before = ssl.get_server_certificate(("127.0.0.1", port))
    other = trustme.CA().issue_cert("127.0.0.1")
    other.private_key_pem.write_to_path(directory / "tls.key")
    assert before == ssl.get_server_certificate(("127.0.0.1", port))
    _write_certificate(authority, directory)
    now = ssl.get_server_certificate(("127.0.0.1", port))
    assert before != now
    assert now in (directory / "tls.crt").read_text()


def _write_certificate(authority: trustme.CA, directory: Path) -> None:
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(directory / "tls.key")
    certificate.cert_chain_pems[0].write_to_path(directory / "tls.crt")
