"""The options of any program with controllers."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_manager.process_options import ProcessOptions, election_problems, parse_process_options
from kube.leader_election import LeaderElectionConfigError, Timing


def options(*argv: str, **environ: str) -> ProcessOptions:
    return parse_process_options("painter", argv, environ, "v0.1")


def test_by_default_it_sees_all_namespaces_and_its_lease_has_its_name() -> None:
    found = options()
    assert ("", "painter", "", ":6060", 5) == (
        found.namespace,
        found.lease,
        found.lease_namespace,
        found.metrics_addr,
        found.workers,
    )


def test_flags_say_otherwise() -> None:
    argv = ("-namespace=walls", "-lease-name=brush", "-lease-namespace=shed", "-metrics-addr=:0", "-workers=1", "-v=4")
    expected = ProcessOptions(
        name="painter",
        namespace="walls",
        lease_name="brush",
        lease_namespace="shed",
        metrics_addr=":0",
        workers=1,
        v=4,
    )
    assert expected == options(*argv)


def test_the_environment_says_which_cluster_and_where_the_lease_is() -> None:
    environ = {"KUBECONFIG": "/a/config", "NAMESPACE": "shed"}
    assert ("/a/config", "shed") == (options(**environ).kubeconfig, options(**environ).lease_namespace)
    given = options("--kubeconfig=/b", "--lease-namespace=attic", **environ)
    assert ("/b", "attic") == (given.kubeconfig, given.lease_namespace)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("-workers=0", "argument --workers: must be at least 1: without workers nothing is reconciled"),
        ("-metrics-addr=6060", "'6060' is not an address to listen on"),
        ("-leader-renew-deadline=20s", "--leader-lease-duration must be greater than --leader-renew-deadline"),
        ("-leader-lease-duration=500ms", "--leader-lease-duration must be at least 1s"),
        ("-pd-failover-period=1m", "unrecognized arguments"),
    ],
)
def test_a_refused_option_names_the_reason(capsys: pytest.CaptureFixture[str], flag: str, message: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        options(flag)
    assert 2 == exit_.value.code
    assert message in capsys.readouterr().err


@given(*[st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.2, 2.0, 2.4, 10.0, 10.2, 10.5])] * 3)
@pytest.mark.rule("LE-10")
def test_flags_are_refused_just_where_the_election_would_be(lease: float, deadline: float, period: float) -> None:
    given_options = ProcessOptions(
        name="painter", leader_lease_duration=lease, leader_renew_deadline=deadline, leader_retry_period=period
    )
    refused = any(election_problems(given_options))
    with pytest.raises(LeaderElectionConfigError) if refused else contextlib.nullcontext():
        Timing(lease, deadline, period)


def test_help_names_every_flag_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        options("-help")
    assert 0 == exit_.value.code
    text = " ".join(capsys.readouterr().out.split())
    assert "address of /metrics, /healthz and /readyz (default :6060)" in text
    assert "name of the Lease that instances compete for (default painter)" in text
