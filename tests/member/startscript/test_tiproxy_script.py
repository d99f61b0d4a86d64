"""TiProxy's start script (objects.md 7.7)."""

from pathlib import Path

import pytest

from member.tiproxy.desired import start_script as script
from member.tiproxy.desired import start_script_options
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import SHELLS, Pod, pod_of

HELP = "Usage:\n  tiproxy [flags]\n\nFlags:\n      --advertise-addr string   advertise address\n"
OLD_HELP = "Usage:\n  tiproxy [flags]\n\nFlags:\n      --config string   proxy config file path\n"


@pytest.fixture(params=SHELLS)
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    made = pod_of("tiproxy", tmp_path, request.param)
    made.replaces(
        "tiproxy", f'#!/bin/sh\n[ "$1" != --help ] || exec echo "{HELP}"\nprintf "%s\\n" "$0" "$@" >"$POD_ROOT/argv"\n'
    )
    return made


@pytest.mark.rule("objects-7.7")
def test_advertises_its_own_name(pod: Pod) -> None:
    assert [
        "/bin/tiproxy",
        "--config=/etc/proxy/proxy.toml",
        "--advertise-addr=demo-tiproxy-0.demo-tiproxy-peer.ns.svc",
    ] == pod.run(script(cluster())).argv


@pytest.mark.rule("objects-7.7")
def test_an_older_version_is_not_given_a_flag_that_it_does_not_know(pod: Pod) -> None:
    pod.replaces(
        "tiproxy",
        f'#!/bin/sh\n[ "$1" != --help ] || exec echo "{OLD_HELP}"\nprintf "%s\\n" "$0" "$@" >"$POD_ROOT/argv"\n',
    )
    assert ["/bin/tiproxy", "--config=/etc/proxy/proxy.toml"] == pod.run(script(cluster())).argv


@pytest.mark.rule("objects-7.7")
def test_a_domain_shows_in_the_name(pod: Pod) -> None:
    run = pod.run(script(cluster(clusterDomain="c.local")))
    assert run.argv is not None
    assert run.argv[-1].endswith(".svc.c.local")


@pytest.mark.rule("objects-7.1")
def test_both_versions_share_one_script() -> None:
    assert script(cluster()) == script(v2())
    assert [{}, {"clusterDomain": "c.local"}] == [
        start_script_options(each) for each in (v2(), cluster(clusterDomain="c.local"))
    ]
