"""The process: how it stops, its messages when its surroundings are wrong, and its HTTP endpoints."""

import contextlib
import json
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES
from tests.controlplane.processes import free_port
from tests.e2e import operators, worlds
from tests.e2e.gate import Call, Gate, HungUp
from tests.e2e.operators import QUICK_LEASE, Operator, reaching, sample_value
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import CRD, OPERATOR_NAMESPACE, Place, await_ready, create_cluster, sample, write_kubeconfig

pytestmark = pytest.mark.slow

_METRICS = (
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "workqueue_retries_total",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_time_seconds",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
    "tidb_operator_cluster_spec_replicas",
    "tidb_operator_cluster_update_errors",
    "rest_client_requests_total",
    "rest_client_request_retries_total",
    "rest_client_request_duration_seconds",
    "rest_client_rate_limiter_duration_seconds",
    "rest_client_request_size_bytes",
    "rest_client_response_size_bytes",
    "leader_election_master_status",
    "leader_election_slowpath_total",
    "informer_queued_items",
    "informer_processing_latency_seconds",
    "informer_store_resource_version",
    "informer_lists_total",
    "informer_watches_total",
    "informer_last_event_timestamp_seconds",
    "informer_handler_pending",
    "informer_handler_failures_total",
    "informer_unreadable_objects_total",
)


@pytest.fixture
def place(sandbox: Place) -> Place:
    """These tests are about the process; the sandbox will do."""
    return sandbox


def _leads(operator: Operator) -> bool:
    return operator.has_said(event="leader election", outcome="became leader")


def _is_ready(operator: Operator) -> bool:
    return operator.page("/readyz")[0] == 200


def _holder(place: Place, environment: Mapping[str, str]) -> str:
    lease = place.client.get(LEASES, operators.lease_name(environment), OPERATOR_NAMESPACE)
    holder: str = lease.decode()["spec"].get("holderIdentity") or ""
    return holder


@pytest.mark.rule("CW-8", "CW-10", "CW-12")
def test_a_signal_ends_an_idle_leader_and_frees_its_lease_for_the_standby(
    place: Place,
) -> None:
    environment = place.environment()
    with operators.running(place.new_log(), environment) as leader:
        eventually(lambda: _leads(leader) and _is_ready(leader))
        with operators.running(place.new_log(), environment) as standby:
            eventually(lambda: _is_ready(standby))
            assert not _leads(standby)
            started = CLOCK.now()
            leader.signal(signal.SIGTERM)
            assert 0 == leader.wait()
            took = CLOCK.now() - started
            # not the 30 s that a running sync may take, nor the 15 s until a lease that is kept runs out
            assert took < 10.0
            eventually(lambda: _leads(standby), within=12.0)
            assert 0 == standby.stop()
        assert not leader.has_said(event="event dropped")
    assert "" == _holder(place, environment)


@contextlib.contextmanager
def _held_at_its_first_write(gate: Gate) -> Iterator[threading.Event]:
    """The gate holds whatever would change something, as a server does that hangs; set once it does."""
    held, released = threading.Event(), threading.Event()

    def hold(_: Call) -> None:
        held.set()
        released.wait(20.0)
        raise HungUp

    gate.hook = hold
    try:
        yield held
    finally:
        released.set()


@pytest.mark.rule("CW-10")
def test_a_second_signal_ends_the_process_at_once(place: Place, namespace: str) -> None:
    with (
        place.gate() as gate,
        operators.running(place.new_log(), place.environment(gate)) as operator,
        _held_at_its_first_write(gate) as held,
    ):
        create_cluster(place.client, sample("basic"), namespace)
        assert held.wait(20.0)
        operator.signal(signal.SIGTERM)
        eventually(lambda: operator.has_said(event="signal received, shutting down"))
        assert operator.is_running
        operator.signal(signal.SIGTERM)
        assert 1 == operator.wait(10.0)
    assert operator.has_said(event="second signal, exiting at once")


@pytest.mark.rule("LE-20")
def test_a_lost_lease_ends_the_process_with_code_1(place: Place) -> None:
    environment = place.environment()
    with operators.running(place.new_log(), environment, *QUICK_LEASE) as operator:
        eventually(lambda: _leads(operator))
        name = operators.lease_name(environment)
        place.client.patch(LEASES, name, OPERATOR_NAMESPACE, {"spec": {"holderIdentity": "somebody else"}})
        assert 1 == operator.wait()
    assert operator.has_said(event="leader election lost")


def test_metrics_and_health_are_served(place: Place, namespace: str) -> None:
    with operators.running(place.new_log(), place.environment()) as operator:
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, "basic", namespace)
        assert 200 == operator.page("/healthz")[0]
        assert 200 == operator.page("/readyz")[0]
        # the sync that has found it Ready continues, and is counted at its end
        reconciled = {"controller": "tidbcluster", "result": "success"}
        eventually(
            lambda: sample_value(operator.page("/metrics")[1], "controller_runtime_reconcile_total", reconciled) > 0
        )
        status, text = operator.page("/metrics")
    assert 200 == status
    series = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert [] == [name for name in _METRICS if name not in series]
    assert [] == [name for name in series if name.endswith("_created")]
    spec = {"namespace": namespace, "name": "basic", "component": "tikv"}
    assert 1 == sample_value(text, "tidb_operator_cluster_spec_replicas", spec)


@pytest.mark.parametrize(
    ("kubeconfig", "told"),
    [
        (None, "no such file"),
        ("contexts: [\n", "not YAML"),
        ("just a text", "not a kubeconfig"),
        ("current-context: prod\ncontexts: [{name: dev, context: {cluster: dev}}]\n", "it has: dev"),
        ("contexts: []\n", "kubectl config use-context"),
    ],
    ids=["missing", "not-yaml", "no-mapping", "wrong-context", "no-context"],
)
def test_a_bad_kubeconfig_is_named(tmp_path: Path, kubeconfig: str | None, told: str) -> None:
    file = tmp_path / "kubeconfig"
    if kubeconfig is not None:
        file.write_text(kubeconfig)
    operator = Operator(tmp_path / "log", {"KUBECONFIG": str(file)})
    assert 1 == operator.wait()
    last = json.loads(operator.said.splitlines()[-1])
    assert ("critical", "cannot start") == (last["level"], last["event"])
    assert last["problem"].startswith(f"{file}: ")
    assert told in last["problem"]
    assert "Traceback" not in operator.said


def test_an_unknown_flag_is_refused(tmp_path: Path) -> None:
    operator = Operator(tmp_path / "log", {}, "--worker=3")
    assert 2 == operator.wait()
    assert "--worker=3" in operator.said


def test_a_port_in_use_is_named_with_its_flag(tmp_path: Path, place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        operator = Operator(tmp_path / "log", place.environment(), f"--metrics-addr={address}")
        assert 1 == operator.wait()
    last = operator.said.splitlines()[-1]
    assert address in last
    assert "--metrics-addr" in last
    assert "Traceback" not in operator.said


@pytest.mark.rule("CW-13")
def test_waits_for_a_missing_api_server(place: Place, tmp_path: Path) -> None:
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    kubeconfig = write_kubeconfig(tmp_path, server)
    environment = reaching(kubeconfig, place.proxy, OPERATOR_NAMESPACE, HELM_RELEASE="patient")
    with operators.running(tmp_path / "log", environment, *QUICK_LEASE) as operator:
        eventually(lambda: operator.has_said(event="list or watch failed"))
        status, text = operator.page("/readyz")
        assert 503 == status
        assert "not yet read: " in text
        assert 200 == operator.page("/healthz")[0]
        assert operator.has_said(event="using cluster", server=server, source=str(kubeconfig))
        assert "Connection refused" in operator.said
        with Gate(place.transport, port):
            eventually(lambda: _is_ready(operator) and _leads(operator))
            assert 0 == operator.stop()


def test_a_missing_crd_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with (
        worlds.sandbox(tmp_path, crds=()) as place,
        operators.running(tmp_path / "log", place.environment()) as operator,
    ):
        told = eventually(lambda: [e for e in operator.events if "not installed" in e["event"]])
        assert "kubectl create -f manifests/crds/pingcap.com_tidbclusters.yaml" == told[0]["install"]
        assert 503 == operator.page("/readyz")[0]
        place.client.create(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        eventually(lambda: _is_ready(operator))
        with place.namespace() as namespace:
            create_cluster(place.client, sample("basic"), namespace)
            await_ready(place, operator, "basic", namespace)
