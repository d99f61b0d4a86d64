"""Containers run their start scripts: v1.6's in both generations bring a cluster up (objects.md 7)."""

from dataclasses import replace

import pytest

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.conditions import holds
from sandbox.timings import Timings
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE, PD, create, create_discovery, discovery, get
from tests.sandbox.scripts import script


def new_world(clock: FakeClock, timings: Timings | None = None) -> World:
    programs = {"/usr/local/bin/tidb-discovery": discovery}
    return World(clock, SeededRandomness(1), programs=programs, timings=timings or Timings())


def container(world: World, pod: str) -> Json:
    """The status of a pod's container."""
    found: Json = world.client().get(PODS, pod, NAMESPACE).decode()["status"]["containerStatuses"][0]
    return found


def with_script(world: World, component: str, text: str) -> None:
    """Create a component whose pods run the test's own script."""
    create(world.client(), component, 1)
    world.client().patch(CONFIG_MAPS, f"basic-{component}", NAMESPACE, {"data": {"startup-script": text}})


@pytest.mark.parametrize("generation", ["v1", "v2"])
@pytest.mark.rule("objects-7")
def test_three_pds_bootstrap_by_the_scripts_of_v16(clock: FakeClock, generation: str) -> None:
    world = new_world(clock)
    create_discovery(world.client())
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        create(world.client(), component, replicas, generation)
    world.advance(30)

    transport = world.data_plane_transport()
    members = get(transport, f"{PD}/pd/api/v1/members")["members"]
    assert [f"basic-pd-{each}" for each in range(3)] == sorted(each["name"] for each in members)
    assert {f"http://basic-pd-{each}.basic-pd-peer.default.svc:2379" for each in range(3)} == {
        each["client_urls"][0] for each in members
    }
    stores = get(transport, f"{PD}/pd/api/v1/stores")["stores"]
    assert [f"basic-tikv-{each}.basic-tikv-peer.default.svc:20160" for each in range(3)] == sorted(
        each["store"]["address"] for each in stores
    )
    pods = [each.decode() for each in world.client().list_page(PODS, NAMESPACE).items]
    assert all(holds(each, "Ready") for each in pods)
    assert 9 == len(pods)


@pytest.mark.rule("objects-7.4")
def test_a_member_that_joined_rejoins_by_its_join_file(clock: FakeClock) -> None:
    world = new_world(clock)
    create_discovery(world.client())
    create(world.client(), "pd", 3)
    world.advance(30)
    for ordinal in range(3):
        world.client().delete(PODS, f"basic-pd-{ordinal}", NAMESPACE)
    world.advance(30)

    members = get(world.data_plane_transport(), f"{PD}/pd/api/v1/members")
    assert 3 == len(members["members"])
    assert members["leader"]["name"]


def test_ignores_an_address_in_a_comment(clock: FakeClock) -> None:
    world = new_world(clock)
    create_discovery(world.client())
    with_script(world, "pd", "# see https://example.com\n" + script("pd"))
    world.advance(30)

    assert "http://" in get(world.data_plane_transport(), f"{PD}/pd/api/v1/members")["members"][0]["client_urls"][0]


@pytest.mark.rule("objects-9")
def test_https_urls_need_a_certificate(clock: FakeClock) -> None:
    world = new_world(clock)
    create_discovery(world.client())
    with_script(world, "pd", script("pd", tls=True))
    world.advance(30)

    message = container(world, "basic-pd-0")["lastState"]["terminated"]["message"]
    assert "TLS key/cert must be provided for client url https://0.0.0.0:2379" == message


@pytest.mark.rule("objects-7.6")
def test_labels_glued_to_a_flag_keep_a_store_from_starting(clock: FakeClock) -> None:
    world = new_world(clock)
    glued = script("tikv", "v2").replace("set -uo pipefail", 'set -uo pipefail\nSTORE_LABELS="zone=a"')
    with_script(world, "tikv", glued)
    world.advance(30)

    message = container(world, "basic-tikv-0")["lastState"]["terminated"]["message"]
    assert "open /etc/tikv/tikv.toml--labels: no such file or directory" == message


@pytest.mark.parametrize(
    ("code", "message", "text"),
    [
        (2, "line 5: syntax error: expected 'fi'", "x=1\n\nif [ -n $x ]; then\n  echo\n"),
        (2, "line 2: syntax error: the sandbox runs nothing in the background", "echo\nsleep 5 &\n"),
        (1, "line 2: CLUSTER: unbound variable", "set -u\necho $CLUSTER\n"),
        (127, "line 1: /pump-server: not found", "exec /pump-server --addr=x\n"),
        (1, "line 1: sed: the sandbox does not know 'y/a/b/'", "echo a | sed y/a/b/\n"),
        (7, "no reason", "echo no reason >&2\nexit 7\n"),
    ],
)
def test_an_unsupported_construct_ends_the_container(clock: FakeClock, code: int, message: str, text: str) -> None:
    world = new_world(clock)
    with_script(world, "tikv", text)
    world.advance(10)

    ended = container(world, "basic-tikv-0")["lastState"]["terminated"]
    assert code == ended["exitCode"]
    assert message in ended["message"]


@pytest.mark.rule("objects-7.4")
def test_a_pod_that_dns_does_not_know_in_time_ends(clock: FakeClock) -> None:
    world = new_world(clock, Timings.real())
    create_discovery(world.client())
    with_script(world, "pd", script("pd", domain="other.example"))
    world.advance(60)

    ended = container(world, "basic-pd-0")["lastState"]["terminated"]
    assert "gave up on DNS after 30 s" == ended["message"]


@pytest.mark.rule("objects-7.2")
def test_debug_mode_starts_no_server(clock: FakeClock) -> None:
    world = new_world(clock)
    with_script(world, "tikv", script("tikv"))
    annotated = {"spec": {"template": {"metadata": {"annotations": {"runmode": "debug"}}}}}
    annotated["spec"]["updateStrategy"] = {"rollingUpdate": {"partition": 0}}  # type: ignore[dict-item]
    world.client().patch(STATEFUL_SETS, "basic-tikv", NAMESPACE, annotated)
    world.advance(60)

    status = container(world, "basic-tikv-0")
    assert [0, False, True] == [status["restartCount"], status["ready"], "running" in status["state"]]


def test_a_shell_without_a_trap_lives_until_the_grace_period_ends(clock: FakeClock) -> None:
    world = World(clock, SeededRandomness(1), timings=replace(Timings.real(), image_pull=0.0))
    for name, command in (("deaf", "sleep 1000"), ("polite", "trap exit TERM; sleep 1000")):
        spec = {
            "containers": [{"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}],
            "terminationGracePeriodSeconds": 20,
        }
        world.client().create(PODS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    world.advance(10)
    for name in ("deaf", "polite"):
        world.client().delete(PODS, name, NAMESPACE)
    world.advance(10)
    early = [each.metadata.name for each in world.client().list_page(PODS, NAMESPACE).items]
    world.advance(15)

    assert [["deaf"], []] == [early, [each.metadata.name for each in world.client().list_page(PODS, NAMESPACE).items]]
