"""Certificates that another program renews while the operator runs."""

import ssl
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
import yaml

from kube.config import ClusterConfig, ConfigError, load_kubeconfig
from kube.http_transport import HttpTransport
from ports import socks
from ports.clock import FakeClock
from ports.transport import Request, TlsError
from tests.certificates import Authority, Pair
from tests.kube.servers import Peer, serving

GET = Request("GET", "/api/v1/pods", timeout=5.0)
_BEGINS, _ENDS = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class World:
    """A server that reports its clients' names, and a client with certificates in files."""

    def __init__(self, directory: Path, clock: FakeClock) -> None:
        self._directory = directory
        self.authority = Authority()
        self.clock = clock
        self.unwanted = ""
        self.renew("first")
        self.trust(self.authority)

    def identity(self, name: str) -> Pair:
        return self.authority.pair("127.0.0.1", common_name=name, begins=_BEGINS, ends=_ENDS)

    def renew(self, name: str, *, key: bool = True) -> None:
        """Write a certificate with this name, and its key."""
        pair = self.identity(name)
        (self._directory / "client.crt").write_bytes(pair.cert)
        if key:
            (self._directory / "client.key").write_bytes(pair.key)

    def trust(self, authority: Authority) -> None:
        (self._directory / "ca.crt").write_bytes(authority.ca)

    def context(self) -> ssl.SSLContext:
        pair = self.identity("server")
        file = self._directory / "server.pem"
        file.write_bytes(pair.cert + pair.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.authority.ca.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(file)
        return context

    def serve(self, peer: Peer) -> None:
        while peer.head():
            name = peer.common_name()
            peer.answer(401 if name == self.unwanted else 200, name.encode())

    def kubeconfig(self, url: str) -> str:
        cluster = {"server": url, "certificate-authority": "ca.crt"}
        user = {"client-certificate": "client.crt", "client-key": "client.key"}
        tree = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        file = self._directory / "config"
        file.write_text(yaml.safe_dump(tree))
        return str(file)


@pytest.fixture
def world(tmp_path: Path, clock: FakeClock) -> World:
    return World(tmp_path, clock)


@pytest.fixture(name="ask")
def asking(world: World) -> Iterator[Callable[[], str]]:
    """Send a request; returns the client's name as the server sees it."""
    with serving(world.serve, world.context()) as server:
        transport = HttpTransport(load_kubeconfig(world.kubeconfig(server.url), world.clock), {}, world.clock)

        def ask() -> str:
            return transport.request(GET).body.decode()

        yield ask
        transport.close()


@pytest.mark.rule("REST-11")
def test_uses_a_renewed_client_certificate_within_a_minute(world: World, ask: Callable[[], str]) -> None:
    seen = [ask()]
    world.renew("second")
    for seconds in (50, 1):
        world.clock.step(seconds)
        seen.append(ask())

    assert ["first", "first", "second"] == seen


@pytest.mark.rule("REST-11")
def test_after_a_401_the_client_certificate_is_read_again(world: World, ask: Callable[[], str]) -> None:
    world.renew("second")
    world.unwanted = "first"

    assert ["first", "second"] == [ask(), ask()]


@pytest.mark.parametrize("content", [b"", b"half of a certificate", None])
@pytest.mark.rule("REST-11")
def test_keeps_the_old_certificates_while_new_ones_are_unusable(
    world: World, ask: Callable[[], str], tmp_path: Path, content: bytes | None
) -> None:
    if content is None:
        world.renew("second", key=False)
    else:
        (tmp_path / "ca.crt").write_bytes(content)
    world.clock.step(51)

    with structlog.testing.capture_logs() as logs:
        assert ["first", "first"] == [ask(), ask()]
    assert ["keeping the old certificates"] == [entry["event"] for entry in logs]


def test_trusts_a_renewed_authority_from_the_second_attempt(world: World, ask: Callable[[], str]) -> None:
    assert "first" == ask()
    world.trust(Authority())
    world.clock.step(51)

    with pytest.raises(TlsError):
        ask()
    world.trust(world.authority)
    assert "first" == ask()


def test_an_error_names_the_package_that_a_socks_proxy_needs(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socks", None)
    socks._dialling_socket.cache_clear()
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY or ALL_PROXY: .* PySocks \(the extra `socks`\)"):
        HttpTransport(ClusterConfig("https://kube.example", "test"), {"ALL_PROXY": "socks5://h:1080"}, clock)


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        ("socks4://10.0.0.1:1080", r"^HTTPS_PROXY or ALL_PROXY: a proxy is http://.* not socks4://; .* in NO_PROXY$"),
        ("http://", r"^HTTPS_PROXY or ALL_PROXY: the proxy is no URL such as http://host:3128$"),
        ("http://u:secret@10.0.0.1:99999", r"^HTTPS_PROXY or ALL_PROXY: the proxy is no URL such as http://host:3128$"),
        ("10.0.0.1:abc", r"^HTTPS_PROXY or ALL_PROXY: the proxy is no URL such as http://host:3128$"),
    ],
)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
def test_an_error_names_an_unusable_proxy_of_the_environment(
    clock: FakeClock, variable: str, proxy: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        HttpTransport(ClusterConfig("https://kube.example", "test"), {variable: proxy}, clock)
    assert "secret" not in str(error.value)
