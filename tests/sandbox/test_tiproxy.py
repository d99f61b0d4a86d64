"""A TiProxy of the sandbox (dataplane-apis.md 9, 15.3)."""

import json
from dataclasses import replace

import pytest

from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from ports.transport import ConnectionRefused, Request, Response
from sandbox.dataplane.processes import Exit, Launch
from sandbox.dataplane.runtime import DataPlane
from sandbox.notifier import Notifier
from sandbox.timings import Timings
from tests.sandbox.test_data_plane import ByFirstLabel

LAUNCH = Launch(
    namespace="ns",
    pod="basic-tiproxy-0",
    pod_uid="basic-tiproxy-0",
    image="pingcap/tiproxy:v1.2.0",
    command=("/bin/tiproxy", "--config=/etc/proxy/proxy.toml"),
    files={"/etc/proxy/proxy.toml": "[proxy]\nmax-connections = 5\n"},
    ports=frozenset({6000, 3080}),
)


class Proxy:
    """A proxy that the test steps."""

    def __init__(self, clock: FakeClock, launch: Launch = LAUNCH) -> None:
        self.clock = clock
        self._plane = DataPlane(
            clock=clock,
            randomness=SeededRandomness(1),
            timings=Timings(),
            notifier=Notifier(clock),
            directory=ByFirstLabel(),
            identity=lambda _, __: self._plane.transport(),
            programs={},
            pause=clock.step,
        )
        self.running = self._plane.start(launch)

    def advance(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self._plane.step()
            self.clock.step(0.01)

    def stop(self) -> None:
        self._plane.stop(self.running)

    def ask(self, method: str, path: str, body: bytes | None = None) -> Response:
        return self._plane.transport().request(Request(method, f"http://basic-tiproxy-0.x:3080{path}", body=body))

    def health(self) -> tuple[int, int]:
        answer = self.ask("GET", "/api/debug/health")
        return answer.status, json.loads(answer.body)["config_checksum"]


@pytest.fixture
def proxy(clock: FakeClock) -> Proxy:
    made = Proxy(clock)
    made.advance(1.0)
    return made


@pytest.mark.rule("dataplane-apis-15.3")
def test_serves_a_moment_after_its_start(clock: FakeClock) -> None:
    proxy = Proxy(clock)
    with pytest.raises(ConnectionRefused):
        proxy.health()
    proxy.advance(1.0)
    assert 200 == proxy.health()[0]


@pytest.mark.parametrize(("version", "status"), [("v1.2.0", 200), ("v1.3.0", 502), ("v1.3.2", 502), ("v26.3.1", 502)])
@pytest.mark.rule("dataplane-apis-9")
def test_from_v1_3_0_on_it_is_not_healthy_without_a_server(clock: FakeClock, version: str, status: int) -> None:
    proxy = Proxy(clock, replace(LAUNCH, image=f"pingcap/tiproxy:{version}"))
    proxy.advance(1.0)
    assert status == proxy.health()[0]


@pytest.mark.rule("dataplane-apis-15.3")
def test_answers_502_from_sigterm_until_it_has_ended(proxy: Proxy) -> None:
    proxy.stop()
    assert 502 == proxy.health()[0]
    proxy.advance(1.0)
    assert Exit(0) == proxy.running.process.exit


@pytest.mark.rule("dataplane-apis-15.3")
def test_waits_as_configured_before_it_shuts_down(clock: FakeClock) -> None:
    text = "[proxy]\ngraceful-wait-before-shutdown = 10\n"
    proxy = Proxy(clock, replace(LAUNCH, files={"/etc/proxy/proxy.toml": text}))
    proxy.advance(1.0)
    proxy.stop()
    proxy.advance(0.9)
    assert proxy.running.process.exit is None
    proxy.advance(0.5)
    assert Exit(0) == proxy.running.process.exit


@pytest.mark.rule("dataplane-apis-9")
def test_labels_are_merged_and_change_the_checksum(proxy: Proxy) -> None:
    before = proxy.health()
    assert 200 == proxy.ask("PUT", "/api/admin/config/", b'[labels]\n"zone" = "a"\n').status
    assert before != proxy.health()
    proxy.ask("PUT", "/api/admin/config/", b"[labels]\nhost = 'b'\n")
    config = json.loads(proxy.ask("GET", "/api/admin/config").body)
    assert {"proxy": {"max-connections": 5}, "labels": {"zone": "a", "host": "b"}} == config


@pytest.mark.parametrize("body", [b"[labels", b"labels = 1", b"[labels]\nzone = 1"])
@pytest.mark.rule("dataplane-apis-9")
def test_rejects_a_malformed_configuration(proxy: Proxy, body: bytes) -> None:
    before = proxy.health()
    assert 500 == proxy.ask("PUT", "/api/admin/config/", body).status
    assert before == proxy.health()


@pytest.mark.rule("9.3")
def test_does_not_start_without_its_certificate(clock: FakeClock) -> None:
    files = {"/etc/proxy/proxy.toml": "[security.server-tls]\ncert = '/var/lib/tls.crt'\n"}
    exit_ = Proxy(clock, replace(LAUNCH, files=files)).running.process.exit
    assert Exit(1, "open /var/lib/tls.crt: no such file or directory") == exit_
