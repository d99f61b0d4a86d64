"""`sql`: an SQL client in front of a Ready TiDB pod, through kubectl's port-forward."""

import os
import shutil
import signal
import stat
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pymysql
import pytest

from cli.failures import Failure
from cli.tidb.main import main, parse
from kube.client import Client
from kube.objects import Json
from ports.transport import ByteStream, Request, Response
from tests.cli.tidb.objects import cluster, dm_cluster, pod
from tests.cli.tidb.sql_programs import MARIADB, Programs, is_running
from tests.cli.tidb.typing_commands import Terminal
from tests.sql_server import HOST, MariaDb, certificates, mariadb

PASSWORD = "a b#\"c'\\d\\n ;=!é "
TIDB: Json = {"version": "v8.5.2", "pd": {"replicas": 1}, "tikv": {"replicas": 1}, "tidb": {"replicas": 2}}
WITH_TLS = TIDB | {"tidb": {"replicas": 2, "tlsClient": {"enabled": True}}}
NOT_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


class Objects:
    """A transport of a server with these objects, by the end of their path; pods are found by a list."""

    def __init__(self, objects: Mapping[str, Json], pods: list[Json]) -> None:
        self._objects, self._pods = objects, pods

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        assert request.is_read
        path = request.url.partition("?")[0]
        if path.endswith("/pods"):
            return Response(200, {}, msgspec.json.encode({"kind": "PodList", "metadata": {}, "items": self._pods}))
        found = next((tree for end, tree in self._objects.items() if path.endswith(end)), None)
        if found is not None:
            return Response(200, {}, msgspec.json.encode(found))
        if path.endswith("clusters"):
            return Response(200, {}, msgspec.json.encode({"kind": "List", "metadata": {}, "items": []}))
        missing = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": path.rpartition("/")[2]}}
        return Response(404, {}, msgspec.json.encode(missing))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        raise NotImplementedError


def secret(**data: bytes) -> Json:
    """A Secret; `_` in a key stands for a point."""
    texts = {key.replace("_", "."): b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "any", "namespace": "default"}, "data": texts}


def server(name: str, status: Json | None = None, **metadata: object) -> Json:
    """A pod of TiDB."""
    labels = {
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/instance": "shop",
        "app.kubernetes.io/component": "tidb",
    }
    return pod("tidb", name, status, "node-1", labels=labels, **metadata).object.decode()


PODS = [server("shop-tidb-0", NOT_READY), server("shop-tidb-1")]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """The only programs on PATH: kubectl."""
    made = Programs(tmp_path / "bin")
    made.place.mkdir()
    made.install_kubectl()
    monkeypatch.setenv("PATH", str(made.place))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return made


class Shop:
    """The cluster `shop`, with its pods and Secrets, and a terminal in front of it."""

    def __init__(self, printed: pytest.CaptureFixture[str]) -> None:
        self._printed = printed
        self.complaints = ""
        self.pods = PODS
        self.objects: dict[str, Json] = {"/tidbclusters/shop": cluster(spec=TIDB).object.decode()}

    def has(self, spec: Json) -> None:
        """Give the cluster another spec."""
        self.objects["/tidbclusters/shop"] = cluster(spec=spec).object.decode()

    def type(self, *arguments: str, code: int = 0) -> str:
        """What `sql` and its client print."""
        terminal = Terminal(Client(Objects(self.objects, self.pods)), self._printed)
        printed = terminal.type("sql", *arguments, code=code)
        self.complaints = terminal.complaints
        return printed

    def refuses(self, *arguments: str) -> str:
        """The sentence with which `sql` fails."""
        with pytest.raises(Failure) as failure:
            self.type(*arguments)
        return str(failure.value)


@pytest.fixture
def shop(programs: Programs, capfd: pytest.CaptureFixture[str]) -> Shop:
    return Shop(capfd)


def test_the_client_connects_through_a_port_of_the_first_ready_pod(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    shop.type("shop", "--context", "east", "--kubeconfig", "k", "--execute", "SELECT 1", "--", "--table", "test")
    kubectl, client = programs.started("kubectl"), programs.started("mysql")
    where = ["--kubeconfig=k", "--context=east", "--namespace=default", "pod/shop-tidb-1", ":4000"]
    assert ["port-forward", "--address=127.0.0.1", *where] == kubectl["argv"]
    secrets, host, port, *others = client["argv"]
    assert ["--user=root", "--password", "--execute=SELECT 1", "--table", "test"] == others
    assert ("--host=127.0.0.1", f"--defaults-file={client['place']}/options") == (host, secrets)
    assert int(port.removeprefix("--port=")) > 0
    assert "[client]\n" == client["options"]


def test_nothing_remains_after_the_client(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    shop.type("shop")
    assert not Path(programs.started("mysql")["place"]).exists()
    assert not is_running(programs.started("kubectl")["pid"])


def test_a_password_is_only_in_a_private_file_that_is_removed_when_the_client_connects(
    shop: Shop, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYSQL_PWD", "of another server")
    programs.install("mysql")
    shop.objects["/secrets/passwords"] = secret(root=b"s3cret-of-root", app=b"s3cret-of-app")
    shop.type("shop", "--user", "app", "--password-from-secret", "passwords")
    client = programs.started("mysql")
    assert '[client]\npassword="s3cret-of-app"\n' == client["options"]
    assert client["kept"] is False
    assert {0o600, 0o700} == {stat.S_IMODE(each) for each in client["modes"]}
    for each in (client, programs.started("kubectl")):
        assert "s3cret" not in repr((each["argv"], each["environ"]))
    assert "--password" not in client["argv"]
    assert "MYSQL_PWD" not in client["environ"]
    assert not Path(client["environ"]["MYSQL_TEST_LOGIN_FILE"]).exists()


def test_a_user_without_a_password_is_not_asked(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    shop.type("shop", "--no-password")
    assert '[client]\npassword=""\n' == programs.started("mysql")["options"]
    assert "--password" not in programs.started("mysql")["argv"]


@pytest.mark.parametrize("code", [0, 1, 7, -signal.SIGKILL])
def test_the_exit_code_is_the_clients(shop: Shop, programs: Programs, code: int) -> None:
    programs.install("mysql")
    programs.set("code", str(code))
    shop.type("shop", code=128 - code if code < 0 else code)


def test_ctrl_c_ends_neither_the_command_nor_the_tunnel(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    programs.set("signal", "SIGINT")
    before = signal.getsignal(signal.SIGINT)
    shop.type("shop")
    assert programs.started("mysql")["kept"] is False
    kubectl = programs.started("kubectl")
    assert kubectl["pid"] == kubectl["session"] != os.getsid(0)
    assert before == signal.getsignal(signal.SIGINT)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_the_end_of_the_terminal_ends_client_and_tunnel(shop: Shop, programs: Programs, name: str) -> None:
    programs.install("mysql")
    programs.set("signal", name)
    # the tests may run where these are ignored, as below nohup
    before = signal.signal(signal.Signals[name], signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit) as end:
            shop.type("shop")
    finally:
        signal.signal(signal.Signals[name], before)
    assert 128 + signal.Signals[name] == end.value.code
    client = programs.started("mysql")
    assert not Path(client["place"]).exists()
    assert not is_running(client["pid"])
    assert not is_running(programs.started("kubectl")["pid"])


# TLS

_CERTIFICATES = {"ca_crt": b"of the authority", "tls_crt": b"of the client", "tls_key": b"of the key"}


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("mysql", "mysql  Ver 8.4.3", ["--ssl-mode=VERIFY_CA"]),
        ("mysql", MARIADB, ["--disable-ssl-verify-server-cert", "--ssl"]),
        ("mariadb", MARIADB, ["--disable-ssl-verify-server-cert", "--ssl"]),
        ("mycli", "", []),
    ],
)
@pytest.mark.rule("objects-9.2")
def test_each_client_verifies_the_authority(
    shop: Shop, programs: Programs, name: str, version: str, expected: list[str]
) -> None:
    programs.install(name, version)
    shop.has(WITH_TLS)
    shop.objects["/secrets/shop-tidb-client-secret"] = secret(**_CERTIFICATES)
    shop.type("shop", "--no-password")
    client = programs.started(name)
    place = client["place"]
    files = [f"--ssl-ca={place}/ca.crt", f"--ssl-cert={place}/tls.crt", f"--ssl-key={place}/tls.key"]
    assert [*expected, *files] == client["argv"][-len(expected) - 3 :]
    assert ["of the authority", "of the client", "of the key"] == list(client["files"].values())
    assert {0o600, 0o700} == {stat.S_IMODE(each) for each in client["modes"]}


def test_a_client_of_mariadb_accepts_a_server_without_tls(shop: Shop, programs: Programs) -> None:
    programs.install("mysql", MARIADB)
    shop.type("shop", "--no-password")
    assert ["--user=root", "--disable-ssl-verify-server-cert"] == programs.started("mysql")["argv"][-2:]


@pytest.mark.rule("objects-9.2")
def test_where_clients_need_no_certificate_tls_needs_no_secret(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    shop.has(TIDB | {"tidb": {"replicas": 2, "tlsClient": {"enabled": True, "disableClientAuthn": True}}})
    shop.type("shop", "--no-password")
    assert ["--user=root", "--ssl-mode=REQUIRED"] == programs.started("mysql")["argv"][-2:]


def test_the_secret_with_the_certificate_can_be_named(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    shop.has(WITH_TLS)
    shop.objects["/secrets/mine"] = secret(ca_crt=b"of mine")
    shop.type("shop", "--tls-secret", "mine")
    assert ["of mine"] == list(programs.started("mysql")["files"].values())


# refusals

_DOCTOR = "`kubectl tidb doctor tc/shop` says why"


@pytest.mark.parametrize(
    ("spec", "pods", "told"),
    [
        (TIDB, PODS[:1], f"no TiDB pod of tidbcluster/shop is Ready: shop-tidb-0 is NotReady; {_DOCTOR}"),
        (
            TIDB,
            [server("shop-tidb-0", deletionTimestamp="2026-01-01T00:00:00Z")],
            f"no TiDB pod of tidbcluster/shop is Ready: shop-tidb-0 is Terminating; {_DOCTOR}",
        ),
        (TIDB, [], f"tidbcluster/shop has no TiDB pod; {_DOCTOR}"),
        (TIDB | {"tidb": {"replicas": 0}}, [], "tidbcluster/shop has no TiDB pod: its spec.tidb.replicas is 0"),
        ({"version": "v8.5.2", "pd": {"replicas": 1}}, [], "tidbcluster/shop has no TiDB: its spec.tidb is not set"),
        (
            {"version": "v8.5.2", "tikv": {"replicas": 1}, "cluster": {"name": "main"}},
            [],
            "tidbcluster/shop has no TiDB: its spec.tidb is not set; it joins TidbCluster default/main",
        ),
        (
            TIDB | {"suspendAction": {"suspendStatefulSet": True}},
            [],
            "tidbcluster/shop hibernates and has no TiDB; `kubectl tidb wake tc/shop` starts its pods",
        ),
    ],
)
def test_says_why_there_is_no_server(shop: Shop, spec: Json, pods: list[Json], told: str) -> None:
    shop.has(spec)
    shop.pods = pods
    assert told == shop.refuses("shop")


def test_a_dmcluster_has_no_tidb(shop: Shop) -> None:
    shop.objects = {"/dmclusters/sync": dm_cluster({}).object.decode()}
    assert shop.refuses("sync").startswith("dmcluster/sync has no TiDB: it migrates data")


def test_a_pod_can_be_named(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    shop.pods = [server(f"shop-tidb-{each}") for each in range(2)]
    shop.type("shop", "--pod", "shop-tidb-1")
    assert "pod/shop-tidb-1" in programs.started("kubectl")["argv"]
    assert "tidbcluster/shop has no TiDB pod x; it has shop-tidb-0, shop-tidb-1" == shop.refuses("shop", "--pod", "x")


def test_without_a_client_the_way_out_is_named(shop: Shop, programs: Programs) -> None:
    forward = "`kubectl port-forward --namespace=default pod/shop-tidb-1 4000`"
    told = "none of mysql, mariadb, mycli is on PATH; install one, such as Debian's package mariadb-client, or connect"
    assert f"{told} another client after {forward}" == shop.refuses("shop")
    programs.install("mysql")
    assert shop.refuses("shop", "--client", "mycli").startswith("mycli is not on PATH; ")


def test_without_kubectl_the_reason_is_named(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    (programs.place / "kubectl").unlink()
    assert "kubectl, which forwards the port, is not on PATH" == shop.refuses("shop")


def test_a_refusal_of_kubectl_is_passed_on(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    programs.set("refusal", 'error: unable to forward port because pod is not running\nError: pods "x" is forbidden')
    assert 'kubectl cannot forward a port: Error: pods "x" is forbidden' == shop.refuses("shop")


def test_the_loss_of_the_tunnel_explains_why_the_client_failed(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    programs.set("code", "1")
    programs.set("loss", "error: lost connection to pod")
    assert "the connection to pod shop-tidb-1 is lost: lost connection to pod" == shop.refuses("shop")


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (None, "no Secret passwords with the password in namespace default"),
        (secret(app=b"x"), "Secret passwords has neither the key root nor password; it has app"),
        (secret(root=b"\xff"), "Secret passwords has no text under the key root"),
        (secret(root=b"a\0b"), "Secret passwords has a NUL under the key root, which no option file can carry"),
    ],
)
def test_says_what_is_wrong_with_the_secret_of_the_password(
    shop: Shop, programs: Programs, stored: Json | None, told: str
) -> None:
    programs.install("mysql")
    shop.objects |= {"/secrets/passwords": stored} if stored else {}
    assert told == shop.refuses("shop", "--password-from-secret", "passwords")


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ({}, "no Secret shop-tidb-client-secret with the client's certificate in namespace default"),
        ({"tls_crt": b"x"}, "Secret shop-tidb-client-secret has only one of the keys tls.crt and tls.key"),
    ],
)
def test_says_what_is_wrong_with_the_certificate(
    shop: Shop, programs: Programs, stored: dict[str, bytes], told: str
) -> None:
    programs.install("mysql")
    shop.has(WITH_TLS)
    shop.objects |= {"/secrets/shop-tidb-client-secret": secret(**stored)} if stored else {}
    assert told == shop.refuses("shop")


def test_a_secret_for_a_cluster_without_tls_is_refused(shop: Shop, programs: Programs) -> None:
    programs.install("mysql")
    told = "tidbcluster/shop offers no TLS: set its spec.tidb.tlsClient.enabled, or omit --tls-secret"
    assert told == shop.refuses("shop", "--tls-secret", "mine")


def test_mycli_reads_a_password_of_one_line_from_a_file(shop: Shop, programs: Programs) -> None:
    programs.install("mycli")
    shop.objects["/secrets/passwords"] = secret(root=b"a\nb", app=PASSWORD.encode())
    refused = shop.refuses("shop", "--password-from-secret", "passwords")
    assert "mycli reads only one line of a password; use --client mysql" == refused
    shop.type("shop", "--password-from-secret", "passwords", "-u", "app")
    client = programs.started("mycli")
    assert (PASSWORD, False) == (client["options"], client["kept"])


def test_mycli_asks_for_a_password_by_itself(shop: Shop, programs: Programs) -> None:
    programs.install("mycli")
    shop.type("shop")
    _host, _port, *others = programs.started("mycli")["argv"]
    assert ["--user=root"] == others


def test_only_words_after_dashes_are_the_clients(capsys: pytest.CaptureFixture[str]) -> None:
    _, given, others = parse(["sql", "shop", "-u", "app", "--", "--user", "x", "--", "-h"])
    assert ("app", ["--user", "x", "--", "-h"]) == (given.user, others)
    assert 2 == main(["sql", "shop", "--tabel", "--", "-t"])
    assert "unrecognized arguments: --tabel" in capsys.readouterr().err


# a real client and a real server


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MariaDb, str]]:
    """MariaDB, with a user who must show a certificate, and the path of its client."""
    client = shutil.which("mariadb")
    if client is None:
        assert not os.environ.get("REQUIRE_EVERYTHING"), "mariadb is missing"
        pytest.skip("mariadb is missing: install mariadb-client-core")
    with mariadb(tmp_path_factory.mktemp("mariadb")) as running:
        with pymysql.connect(host=HOST, port=running.port, user="root", autocommit=True) as connection:
            connection.cursor().execute("CREATE USER app@'%%' IDENTIFIED BY %s REQUIRE X509", (PASSWORD,))
        yield running, client


@pytest.fixture
def real_shop(real: tuple[MariaDb, str], shop: Shop, programs: Programs) -> Shop:
    """The cluster, with TLS, whose server is MariaDB."""
    running, client = real
    programs.install_kubectl(HOST, running.port)
    (programs.place / "mariadb").symlink_to(client)
    shop.has(WITH_TLS)
    files = {name: (running.tls / name.replace("_", ".")).read_bytes() for name in _CERTIFICATES}
    shop.objects["/secrets/shop-tidb-client-secret"] = secret(**files)
    shop.objects["/secrets/passwords"] = secret(app=PASSWORD.encode())
    return shop


_AS_APP = ("shop", "--user", "app", "--password-from-secret", "passwords")


@pytest.mark.slow
def test_mariadbs_client_logs_in_with_password_and_certificate(real_shop: Shop) -> None:
    printed = real_shop.type(*_AS_APP, "-e", "SHOW STATUS LIKE 'Ssl_cipher'", "--", "--batch", "--skip-column-names")
    assert printed.startswith("Ssl_cipher\tTLS_")


@pytest.mark.slow
def test_mariadbs_client_refuses_a_server_of_another_authority(real_shop: Shop, tmp_path: Path) -> None:
    stored = real_shop.objects["/secrets/shop-tidb-client-secret"]["data"]
    stored["ca.crt"] = b64encode((certificates(tmp_path / "others") / "ca.crt").read_bytes()).decode()
    real_shop.type(*_AS_APP, "-e", "SELECT 1", code=1)
    assert "certificate in certificate chain" in real_shop.complaints
