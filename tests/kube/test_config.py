import base64
import os
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from kube.config import POD_NETWORK, ClusterConfig, ConfigError, Tls, load_in_cluster, load_kubeconfig
from kube.credentials import TokenFile
from kube.pools import ssl_context
from kube.user_config import load
from ports.clock import FakeClock

SECRET = "s3cret-value"


def kubeconfig(directory: Path, user: Any = None, cluster: Any = None, context: Any = None, **top: Any) -> str:
    """Write a kubeconfig with one cluster, user and context; return its path."""
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/"} | (cluster or {})}],
        "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"} | (context or {})}],
        "users": [{"name": "u", "user": user if user is not None else {"token": SECRET}}],
    }
    file = directory / "config"
    file.write_text(yaml.safe_dump(tree | top))
    return str(file)


def plugin(directory: Path, status: dict[str, Any]) -> dict[str, Any]:
    """An exec plugin that prints `status` and counts its runs; returns the user section that names it."""
    script = directory / "plugin.py"
    api_version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
    script.write_text(
        textwrap.dedent(f"""
        import json, pathlib
        runs = pathlib.Path({str(directory / "runs")!r})
        runs.write_text((runs.read_text() if runs.exists() else "") + "x")
        print(json.dumps({credential!r}))
        """)
    )
    return {"exec": {"apiVersion": api_version, "command": sys.executable, "args": [str(script)]}}


def test_a_kubeconfig_names_server_namespace_and_token(tmp_path: Path, clock: FakeClock) -> None:
    path = kubeconfig(tmp_path, context={"namespace": "tidb"}, cluster={"proxy-url": "http://proxy:3128"})

    config = load("", {"KUBECONFIG": path}, clock)

    assert ("https://10.0.0.1:6443", "tidb", "http://proxy:3128") == (config.server, config.namespace, config.proxy_url)
    assert f"Bearer {SECRET}" == config.credentials.authorization()


def test_an_extension_names_the_proxy_that_reaches_pods(tmp_path: Path, clock: FakeClock) -> None:
    def read(*extensions: Any) -> ClusterConfig:
        return load_kubeconfig(kubeconfig(tmp_path, cluster={"extensions": list(extensions)}), clock)

    other = {"name": "other", "extension": {"proxy-url": "http://other:1"}}
    config = read(other, {"name": POD_NETWORK, "extension": {"proxy-url": "http://pods:3128"}})
    assert ("", "http://pods:3128") == (config.proxy_url, config.pods_proxy_url)
    assert ["", "", ""] == [
        read(*each).pods_proxy_url
        for each in ([other], [{"name": POD_NETWORK}], [{"name": POD_NETWORK, "extension": 1}])
    ]
    with pytest.raises(
        ConfigError, match=r"extensions\[pod-network\].proxy-url: a proxy is http://, https:// or socks5://"
    ):
        read({"name": POD_NETWORK, "extension": {"proxy-url": "socks4://x:1"}})


def test_the_flag_wins_over_the_environment(tmp_path: Path, clock: FakeClock) -> None:
    path = kubeconfig(tmp_path)

    assert path == load(path, {"KUBECONFIG": "/nowhere"}, clock).source


def test_uses_the_current_context(tmp_path: Path, clock: FakeClock) -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "namespace": name}} for name in ("prod", "dev")]

    config = load_kubeconfig(kubeconfig(tmp_path, contexts=contexts), clock)

    assert ("dev", None) == (config.namespace, config.credentials.authorization())


def test_certificates_are_read_from_data_or_from_files_next_to_the_kubeconfig(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "client.pem").write_bytes(b"certificate")
    user = {"client-certificate": "client.pem", "client-key-data": base64.b64encode(b"key").decode()}
    cluster = {"certificate-authority-data": base64.b64encode(b"ca").decode(), "tls-server-name": "kube"}

    config = load_kubeconfig(kubeconfig(tmp_path, user, cluster), clock)

    assert Tls(b"ca", b"certificate", b"key", "kube") == config.tls


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_certificates_may_be_wrapped_as_base64_prints_them(tmp_path: Path, clock: FakeClock, end: str) -> None:
    wrapped = base64.encodebytes(b"authority" * 20).decode().replace("\n", end)

    config = load_kubeconfig(kubeconfig(tmp_path, cluster={"certificate-authority-data": wrapped}), clock)

    assert Tls(b"authority" * 20) == config.tls


def test_a_token_serves_until_the_token_file_exists(tmp_path: Path, clock: FakeClock) -> None:
    """As in client-go: the token is a copy of the file from when the kubeconfig was written."""
    user = {"token": "old", "tokenFile": "token"}
    credentials = load_kubeconfig(kubeconfig(tmp_path, user), clock).credentials

    assert "Bearer old" == credentials.authorization()
    (tmp_path / "token").write_text("new")
    clock.step(51)
    assert "Bearer new" == credentials.authorization()


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"user": None},
        {"user": "x"},
        {"user": {"exec": {"command": "x"}}},
        {"user": {"username": "admin", "password": 12345}},
        {"context": {"namespace": "x"}},
        {"cluster": {"server": 5}},
    ],
)
def test_ignores_malformed_entries_that_are_not_chosen(tmp_path: Path, clock: FakeClock, odd: Any) -> None:
    path = kubeconfig(tmp_path)
    tree = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    for kind in ("clusters", "contexts", "users"):
        tree[kind] = [{"name": "other"} | odd, *tree[kind]]
    Path(path).write_text(yaml.safe_dump(tree), encoding="utf-8")

    assert f"Bearer {SECRET}" == load_kubeconfig(path, clock).credentials.authorization()


def test_a_user_without_credentials_is_anonymous(tmp_path: Path, clock: FakeClock) -> None:
    for users in ([{"name": "u"}], [{"name": "u", "user": None}]):
        assert load_kubeconfig(kubeconfig(tmp_path, users=users), clock).credentials.authorization() is None


def test_a_user_and_password_are_basic_authentication(tmp_path: Path, clock: FakeClock) -> None:
    config = load_kubeconfig(kubeconfig(tmp_path, {"username": "admin", "password": "x"}), clock)

    assert "Basic YWRtaW46eA==" == config.credentials.authorization()


@pytest.mark.slow
def test_an_exec_plugin_runs_when_its_credential_expires_or_is_rejected(tmp_path: Path, clock: FakeClock) -> None:
    expiry = (clock.wall() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plugin(tmp_path, {"token": "from-plugin", "expirationTimestamp": expiry})
    credentials = load_kubeconfig(kubeconfig(tmp_path, user), clock).credentials

    def runs() -> int:
        credentials.authorization()
        return len((tmp_path / "runs").read_text())

    assert ("Bearer from-plugin", 1) == (credentials.authorization(), runs())
    clock.step(10)
    credentials.rejected(clock.now())
    assert 2 == runs()
    clock.step(3600)
    assert 3 == runs()


def test_an_exec_plugin_may_give_a_certificate(tmp_path: Path, clock: FakeClock) -> None:
    user = plugin(tmp_path, {"clientCertificateData": "certificate", "clientKeyData": "key"})

    config = load_kubeconfig(kubeconfig(tmp_path, user), clock)

    assert (b"certificate", b"key") == (config.tls.certificate, config.tls.key)
    assert config.credentials.authorization() is None


def test_a_failing_exec_plugin_is_named(tmp_path: Path, clock: FakeClock) -> None:
    api_version = "client.authentication.k8s.io/v1"
    user = {"exec": {"apiVersion": api_version, "command": str(tmp_path / "absent")}}

    with pytest.raises(ConfigError, match=r"users\[u\]\.user\.exec: the credential plugin failed: No such file"):
        load_kubeconfig(kubeconfig(tmp_path, user), clock)


@pytest.mark.parametrize("provider", [{"name": "gcp", "config": {"access-token": SECRET, "expiry": "soon"}}])
def test_an_auth_provider_that_fails_is_named_and_not_quoted(
    tmp_path: Path, clock: FakeClock, provider: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"user.auth-provider: the auth provider failed: ValueError") as error:
        load_kubeconfig(kubeconfig(tmp_path, {"auth-provider": provider}), clock)
    assert SECRET not in str(error.value)


def test_an_auth_provider_gives_its_token(tmp_path: Path, clock: FakeClock) -> None:
    provider = {"name": "gcp", "config": {"access-token": "from-gcp", "expiry": "2999-01-01T00:00:00Z"}}

    config = load_kubeconfig(kubeconfig(tmp_path, {"auth-provider": provider}), clock)

    assert "Bearer from-gcp" == config.credentials.authorization()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": ""}, "current-context is empty"),
        ({"current-context": "prod"}, "contexts has no entry named 'prod'; it has: dev"),
        ({"clusters": []}, "clusters has no entry named 'c'; it has: none"),
        ({"users": None}, "users has no entry named 'u'"),
        ({"clusters": "x"}, r"Expected `array`, got `str` - at `\$.clusters`"),
        ({"cluster": {"server": "10.0.0.1:6443"}}, r"clusters\[c\].cluster.server must be a URL"),
        ({"cluster": {"server": None}}, r"clusters\[c\].cluster.server must be a URL"),
        ({"cluster": {"proxy-url": "socks4://x:1"}}, "proxy-url: a proxy is http://, https:// or socks5://"),
        (
            {"cluster": {"certificate-authority": "no.pem"}},
            r"certificate-authority: cannot read .*no.pem: No such file",
        ),
        ({"user": {"client-certificate-data": "***"}}, "client-certificate-data is not base64"),
        ({"cluster": {"certificate-authority": "/dev/null"}}, "certificate-authority: /dev/null is empty"),
        ({"user": {"client-key-data": "a2V5"}}, "client-certificate and client-key go together"),
        ({"user": {"exec": {"apiVersion": "v1"}}}, r"users\[u\].user: .*required field `command` - at `\$.exec`"),
        (
            {"user": {"username": "admin", "password": 5}},
            r"users\[u\].user: Expected `str`, got `int` - at `\$.password`",
        ),
        ({"contexts": [{"name": "dev"}]}, r"contexts\[dev\].context: Object missing required field `cluster`"),
        ({"user": {"client-certificate-data": "YQ==\u00fc"}}, "client-certificate-data is not base64"),
        ({"user": {"token": "a\nb"}}, r"users\[u\].user.token: the token holds characters that no token has"),
    ],
)
def test_an_error_names_file_and_field(tmp_path: Path, clock: FakeClock, change: dict[str, Any], message: str) -> None:
    path = kubeconfig(tmp_path, **change)

    with pytest.raises(ConfigError, match=message) as error:
        load_kubeconfig(path, clock)
    assert str(error.value).startswith(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"users:\n- token: {SECRET}\n  x: [", "not YAML in line 3"),
        (f"users: {SECRET}\na: " + "[" * 5000, "nested too deeply"),
        (f"users: {SECRET}\na: &a [*a]", "nested too deeply"),
        (f"users: {SECRET}\na: " + "9" * 5000, "holds values of no use"),
        (f'users: {SECRET}\na: "\\Uffffffff"', "holds values of no use"),
        (f"users: {SECRET}\n? [a]\n: b", "holds values of no use|not YAML"),
        (f"token: {SECRET}\x00", "characters that YAML does not allow"),
        (f"- {SECRET}", "holds no mapping"),
        (
            f"a0: &a0 {SECRET}\n" + "".join(f"a{n}: &a{n} [{', '.join(9 * [f'*a{n - 1}'])}]\n" for n in range(1, 12)),
            "aliases",
        ),
        (f"users: {SECRET}" + " " * (4 << 20), "larger than 4 MiB"),
        (f"users: [{{name: u, user: {{token: [{SECRET}]}}}}]", "current-context is empty"),
        (f"users: [[{SECRET}]]", "Expected `object`, got `array`"),
        (
            "current-context: a\n"
            "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: 'https://a'}}]\n"
            f"users: [{{name: u, user: {{token: [{SECRET}]}}}}]",
            "Expected `str`, got `array`",
        ),
    ],
)
def test_an_error_about_a_malformed_file_hides_its_secrets(
    tmp_path: Path, clock: FakeClock, text: str, message: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)

    with pytest.raises(ConfigError, match=message) as error:
        load_kubeconfig(str(file), clock)
    assert SECRET not in str(error.value)


def test_a_kubeconfig_may_come_through_a_pipe(tmp_path: Path, clock: FakeClock) -> None:
    """For example `--kubeconfig <(kind get kubeconfig)`."""
    reader, writer = os.pipe()
    os.write(writer, Path(kubeconfig(tmp_path)).read_bytes())
    os.close(writer)
    expected = load_kubeconfig(kubeconfig(tmp_path), clock).server
    assert expected == load_kubeconfig(f"/dev/fd/{reader}", clock).server
    os.close(reader)


@pytest.mark.parametrize(("path", "message"), [("x" * 5000, "File name too long"), ("/", "Is a directory")])
def test_an_error_names_a_path_that_is_not_a_file(clock: FakeClock, path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot read the file: {message}"):
        load(path, {}, clock)


def test_a_missing_file_is_named(clock: FakeClock) -> None:
    with pytest.raises(ConfigError, match="/no/where: no such file; name one kubeconfig"):
        load("/no/where", {}, clock)


def test_without_pod_and_kubeconfig_the_error_names_the_way_out(clock: FakeClock) -> None:
    way_out = "this process does not run in a pod; name a kubeconfig with --kubeconfig or KUBECONFIG"
    with pytest.raises(ConfigError, match=way_out):
        load("", {}, clock)


def test_no_repr_contains_a_secret(tmp_path: Path, clock: FakeClock) -> None:
    user = {
        "token": SECRET,
        "client-certificate-data": "YQ==",
        "client-key-data": base64.b64encode(SECRET.encode()).decode(),
    }
    config = load_kubeconfig(kubeconfig(tmp_path, user, {"proxy-url": f"http://u:{SECRET}@proxy"}), clock)

    assert SECRET not in repr(config)


def pod(directory: Path) -> tuple[dict[str, str], Path]:
    for name, text in (("token", " first \n"), ("namespace", "tidb-admin"), ("ca.crt", "ca")):
        (directory / name).write_text(text)
    return {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, directory


def test_a_pod_finds_everything_in_its_service_account(tmp_path: Path, clock: FakeClock) -> None:
    config = load_in_cluster(*pod(tmp_path)[:1], clock, pod(tmp_path)[1])

    assert ("https://[fd00::1]:443", "tidb-admin", b"ca") == (config.server, config.namespace, config.tls.ca)
    assert "Bearer first" == config.credentials.authorization()


@pytest.mark.rule("REST-11")
def test_a_token_file_is_read_again_after_50_seconds(tmp_path: Path, clock: FakeClock) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    credentials = TokenFile(token, clock)
    seen = [credentials.authorization()]
    token.write_text("second")

    for seconds in (50, 1):
        clock.step(seconds)
        seen.append(credentials.authorization())

    assert ["Bearer first", "Bearer first", "Bearer second"] == seen


@pytest.mark.parametrize("content", [None, " \n", "two words"])
@pytest.mark.rule("REST-11")
def test_an_old_token_outlives_a_file_that_cannot_be_read(
    tmp_path: Path, clock: FakeClock, content: str | None
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    credentials = TokenFile(token, clock)
    credentials.authorization()
    if content is None:
        token.unlink()
    else:
        token.write_text(content)
    clock.step(51)

    with structlog.testing.capture_logs() as logs:
        assert ["Bearer first"] * 3 == [credentials.authorization() for _ in range(3)]
    assert ["keeping the old token"] == [entry["event"] for entry in logs]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\n", "the token file is empty"),
        (b"\xff", "cannot read the token file"),
        (f"{SECRET}\n{SECRET}".encode(), "the token holds characters that no token has"),
        (f"\ufeff{SECRET}".encode(), "the token holds characters that no token has"),
        (f"{SECRET}\0".encode(), "the token holds characters that no token has"),
    ],
)
@pytest.mark.rule("REST-11")
def test_does_not_quote_an_unusable_token(tmp_path: Path, clock: FakeClock, content: bytes, told: str) -> None:
    (tmp_path / "token").write_bytes(content)

    with pytest.raises(ConfigError, match=told) as error:
        TokenFile(tmp_path / "token", clock).authorization()
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (Tls(ca=b"no pem"), "certificate-authority is not a certificate"),
        (Tls(certificate=b"no pem", key=SECRET.encode()), "client-certificate and client-key cannot be used together"),
    ],
)
def test_unusable_certificates_are_named(tls: Tls, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        ssl_context(tls, "config")
    assert SECRET not in str(error.value)


@pytest.mark.slow
def test_imports_the_kubernetes_package_only_if_needed() -> None:
    code = "import kube.connecting, sys; sys.exit('kubernetes' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_a_config_has_sane_defaults() -> None:
    config = ClusterConfig("http://127.0.0.1:1", "test")

    assert ("default", None, False) == (config.namespace, config.credentials.authorization(), config.tls.insecure)
