"""Credential commands that work, hang, fail or print something else."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from kube.credentials import ConfigError, ExecCredentials
from kube.exec_plugin import Credential, Plugin, PluginFailed, ask
from ports.clock import FakeClock
from tests.e2e.waiting import eventually

_VERSION = "client.authentication.k8s.io/v1"


def shell(script: str, **fields: Any) -> Plugin:
    return Plugin(command="/bin/sh", api_version=_VERSION, args=("-c", script), **fields)


def printing(status: Any, version: str = _VERSION) -> Plugin:
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return shell(f"echo '{answer}'")


def test_a_command_prints_a_token_with_its_expiry(tmp_path: Path) -> None:
    plugin = printing({"token": "t", "expirationTimestamp": "2030-01-01T00:00:00Z", "clientKeyData": None})

    assert Credential("t", datetime(2030, 1, 1, tzinfo=UTC)) == ask(plugin, {}, tmp_path)


def test_a_command_receives_the_cluster_information(tmp_path: Path) -> None:
    config = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {"server": "https://10.0.0.1", "extensions": [config, {"name": "other"}]}
    plugin = shell('echo "$KUBERNETES_EXEC_INFO" > told; exit 1', provide_cluster_info=True)

    with pytest.raises(PluginFailed):
        ask(plugin, cluster, tmp_path)

    assert {
        "apiVersion": _VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://10.0.0.1", "config": {"audience": "a"}}},
    } == json.loads((tmp_path / "told").read_text())


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        (shell("exit 3"), "exit code 3"),
        (shell("echo 'log in first' >&2; exit 3"), "exit code 3: log in first"),
        (shell(r"printf '\377' >&2; exit 3"), "exit code 3: \ufffd"),
        (shell("kill -9 $$"), "exit code -9"),
        (shell("true"), "its answer is not JSON"),
        (shell("echo secret"), "its answer is not JSON"),
        (shell(r"printf '\377\376'"), "its answer is not JSON"),
        (shell("echo 5"), "its answer is no ExecCredential: Expected `object`, got `int`"),
        (printing(None), "its answer is no ExecCredential: Expected `object`, got `null` - at `$.status`"),
        (printing({"token": 5}), "Expected `str | null`, got `int` - at `$.status.token`"),
        (printing({"token": "t", "expirationTimestamp": "soon"}), "Invalid RFC3339 encoded datetime"),
        (printing({"token": "t", "expirationTimestamp": "2030-01-01T00:00:00"}), "with a timezone"),
        (printing({"token": "t"}, "client.authentication.k8s.io/v1beta1"), "it answered in client.authentication"),
        (printing({}), "it printed neither a token nor a client certificate"),
        (printing({"clientCertificateData": "c"}), "it printed neither a token nor a client certificate"),
        (Plugin(command="./absent", api_version=_VERSION), "No such file or directory"),
        (Plugin(command="a\0b", api_version=_VERSION), "embedded null byte"),
    ],
)
def test_an_error_does_not_quote_a_malformed_credential(tmp_path: Path, plugin: Plugin, told: str) -> None:
    with pytest.raises(PluginFailed) as error:
        ask(plugin, {}, tmp_path)

    assert told in str(error.value)
    assert "secret" not in str(error.value)


def test_ends_a_command_that_hangs(tmp_path: Path) -> None:
    with pytest.raises(PluginFailed, match=r"no answer within 0.05 s"):
        ask(shell("exec sleep 60"), {}, tmp_path, patience=0.05)


def test_a_failed_command_runs_again_after_ten_seconds(tmp_path: Path, clock: FakeClock) -> None:
    credentials = ExecCredentials("users[u].user.exec", shell("echo x >> runs; exit 1"), {}, tmp_path, clock)

    def runs() -> int:
        with pytest.raises(ConfigError, match=r"users\[u\]\.user\.exec: the credential plugin failed: exit code 1"):
            credentials.authorization()
        return len((tmp_path / "runs").read_text().split())

    assert [1, 1] == [runs(), runs()]
    clock.step(11)
    assert 2 == runs()


@pytest.mark.parametrize(
    ("expiry", "runs"), [("0001-01-01T00:00:00Z", 2), ("9999-12-31T23:59:59Z", 1), ("2026-01-01T00:00:59Z", 1)]
)
def test_a_credential_is_used_until_its_end_however_short_it_lives(
    tmp_path: Path, clock: FakeClock, expiry: str, runs: int
) -> None:
    answer = printing({"token": "t", "expirationTimestamp": expiry}).args[1]
    credentials = ExecCredentials("exec", shell(f"echo x >> runs; {answer}"), {}, tmp_path, clock)

    assert ["Bearer t"] * 2 == [credentials.authorization() for _ in range(2)]
    assert runs == len((tmp_path / "runs").read_text().split())


class Renewed:
    """A credential with a lifetime of 5 minutes (or `lives`), and a command whose next runs the test arranges."""

    def __init__(self, directory: Path, clock: FakeClock, lives: float = 300.0) -> None:
        self.clock = clock
        self._directory = directory
        self._lives = lives
        self.arrange()
        plugin = shell("echo x >> runs; . ./next")
        self.credentials = ExecCredentials("exec", plugin, {}, directory, clock)

    def arrange(self, before: str = "") -> None:
        """Set what the next runs do before they print the current credential."""
        end = self.clock.wall() + timedelta(seconds=self._lives)
        answer = printing({"token": f"t{self.clock.now():g}", "expirationTimestamp": end.isoformat()}).args[1]
        (self._directory / "next").write_text(f"{before}\n{answer}\n")

    @property
    def token(self) -> str:
        return str(self.credentials.authorization())

    @property
    def runs(self) -> int:
        return len((self._directory / "runs").read_text().split())


@pytest.mark.parametrize(("lives", "leeway"), [(3600.0, 60.0), (300.0, 30.0), (40.0, 4.0)])
def test_a_credential_is_renewed_shortly_before_its_end(
    tmp_path: Path, clock: FakeClock, lives: float, leeway: float
) -> None:
    plugin = Renewed(tmp_path, clock, lives)
    assert "Bearer t0" == plugin.token
    clock.step(lives - leeway - 1)
    assert ("Bearer t0", 1) == (plugin.token, plugin.runs)
    clock.step(1)
    plugin.arrange()
    assert "Bearer t0" == plugin.token
    eventually(lambda: f"Bearer t{lives - leeway:g}" == plugin.token)
    assert 2 == plugin.runs


def test_does_not_wait_for_a_slow_command_while_the_credential_is_valid(tmp_path: Path, clock: FakeClock) -> None:
    """The elector would lose its lease."""
    plugin = Renewed(tmp_path, clock)
    assert "Bearer t0" == plugin.token
    clock.step(280)
    plugin.arrange("while [ ! -e go ]; do sleep 0.01; done")
    assert ["Bearer t0"] * 3 == [plugin.token for _ in range(3)]
    eventually(lambda: 2 == plugin.runs)
    (tmp_path / "go").touch()
    eventually(lambda: "Bearer t280" == plugin.token)
    assert 2 == plugin.runs


def test_a_failed_command_does_not_invalidate_a_valid_credential(tmp_path: Path, clock: FakeClock) -> None:
    plugin = Renewed(tmp_path, clock)
    assert "Bearer t0" == plugin.token
    clock.step(280)
    plugin.arrange("exit 1")
    with structlog.testing.capture_logs() as logs:
        assert "Bearer t0" == plugin.token
        eventually(lambda: bool(logs))
    assert [("keeping the old credential", "the credential plugin failed: exit code 1")] == [
        (line["event"], line["problem"]) for line in logs
    ]
    clock.step(11)
    plugin.arrange()
    assert "Bearer t0" == plugin.token
    eventually(lambda: "Bearer t291" == plugin.token)


def test_does_not_use_an_expired_credential(tmp_path: Path, clock: FakeClock) -> None:
    plugin = Renewed(tmp_path, clock)
    assert "Bearer t0" == plugin.token
    clock.step(300)
    plugin.arrange("exit 1")
    with pytest.raises(ConfigError, match="exit code 1"):
        plugin.credentials.authorization()
    clock.step(11)
    plugin.arrange()
    assert "Bearer t311" == plugin.token


def test_does_not_prompt_the_user_before_the_credential_expires(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Renewed(tmp_path, clock)
    assert "Bearer t0" == plugin.token
    monkeypatch.setattr("kube.credentials.asks_people", lambda _plugin: True)
    clock.step(299)
    assert ["Bearer t0"] * 2 == [plugin.token for _ in range(2)]
    clock.step(1)
    plugin.arrange()
    assert ("Bearer t300", 2) == (plugin.token, plugin.runs)


def test_callers_that_wait_for_a_run_share_its_result(tmp_path: Path, clock: FakeClock) -> None:
    plugin = Renewed(tmp_path, clock)
    plugin.arrange("while [ ! -e go ]; do sleep 0.01; done")
    tokens: list[str] = []
    threads = [threading.Thread(target=lambda: tokens.append(plugin.token), name="asking") for _ in range(5)]
    for thread in threads:
        thread.start()
    eventually((tmp_path / "runs").exists)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join()
    assert (["Bearer t0"] * 5, 1) == (tokens, plugin.runs)
