"""`report`: a file for support, without secrets and addresses."""

import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import msgspec
import pytest

from cli.failures import Failure
from cli.tidb.pods import of_instances
from kube.client import Client
from kube.resources import CONFIG_MAPS, PODS, SECRETS, TIDB_CLUSTERS
from member.labels import INSTANCE
from ports.transport import ByteStream, ConnectionLost, Request, Response, TransportError
from tests.cli.tidb.objects import cluster
from tests.cli.tidb.typing_commands import ReadOnly, Refusing, Terminal
from tests.kube.fakes import FakeStream, answer
from tests.operator_world import OperatorWorld

pytestmark = pytest.mark.slow
SECRET = "do-not-show-it"


def contents(path: Path) -> Mapping[str, str]:
    with tarfile.open(path) as archive:
        files = {each.name: archive.extractfile(each) for each in archive}
        return {name: file.read().decode() for name, file in files.items() if file}


def test_a_report_has_objects_events_and_logs_and_reads_no_secret(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reading = ReadOnly(running.world.transport())
    shown = Terminal(Client(reading), capsys).document("report", "basic", "--file", str(tmp_path / "a.tar.gz"))
    found = contents(tmp_path / "a.tar.gz")
    assert list(found) == shown["contains"]
    assert {
        *("status.yaml", "events.yaml", "index.txt", "objects/tidbclusters/basic.yaml", "objects/pods/basic-pd-0.yaml"),
        *("objects/statefulsets/basic-tikv.yaml", "objects/nodes/node-0.yaml", "logs/basic-pd-0/pd.log"),
    } <= set(found)
    assert "SuccessfulCreate" in found["events.yaml"]
    assert "logs/basic-pd-0/pd.log\n" in found["index.txt"]
    assert not [each for each in reading.paths if f"/{SECRETS.plural}" in each]
    assert {} == {path: times for path, times in Counter(reading.paths).items() if times > 1}
    lists = [each.partition("?")[0] for each in reading.paths if "/log?" not in each]
    assert len(lists) == len(set(lists))
    assert 0o600 == (tmp_path / "a.tar.gz").stat().st_mode & 0o777


def test_objects_are_found_by_the_instance_name_of_the_cluster() -> None:
    found = cluster("shop")
    assert f"{INSTANCE} in (shop)" == of_instances(found.cluster)
    labelled = msgspec.structs.replace(found.cluster.metadata, labels={INSTANCE: "till"})
    assert f"{INSTANCE} in (till)" == of_instances(msgspec.structs.replace(found.cluster, metadata=labelled))


def test_values_that_look_like_secrets_and_addresses_are_replaced(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = running.admin.get(TIDB_CLUSTERS, "basic", "default").decode()["spec"]["tidb"]
    text = f'[security]\npassword = "{SECRET}"\nproxy = "http://me:{SECRET}@[fd00::7]:80 or 10.9.8.7:4000, 10.9.8.7."\n'
    labels = {"app.kubernetes.io/instance": "basic"}
    map_ = {"metadata": {"name": "settings", "labels": labels}, "data": {"a.toml": text, "node": "ip-10-9-8-6.local"}}
    running.admin.create(CONFIG_MAPS, map_, "default")
    running.change(tidb={"env": [{"name": "MYSQL_PASSWORD", "value": SECRET}]})
    try:
        Terminal(running.admin, capsys).type("report", "basic", "--file", str(tmp_path / "a.tar.gz"))
    finally:
        running.admin.delete(CONFIG_MAPS, "settings", "default")
        running.change(tidb={"env": before.get("env")})
    found = contents(tmp_path / "a.tar.gz")
    settings = found["objects/configmaps/settings.yaml"]
    assert 2 == len(set(re.findall(r"address-\d+(?=\]|:4000)", settings)))
    assert re.search(r"(address-\d+):4000, \1\.", settings)
    assert "MYSQL_PASSWORD" in found["objects/tidbclusters/basic.yaml"]
    for name, text in found.items():
        assert SECRET not in text, name
        assert not [each for each in re.findall(r"[\d.]{7,}|ip-10-9", text) if is_address(each)], name


def is_address(text: str) -> bool:
    try:
        return not (ip_address(text).is_loopback or ip_address(text).is_unspecified)
    except ValueError:
        return text.startswith("ip-")


class Renaming(ReadOnly):
    """A transport of a server whose first node is named after its address."""

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        answer = super().request(replace(request, url=request.url.replace("10.9.8.5", "node-0")))
        return replace(answer, body=answer.body.replace(b"node-0", b"10.9.8.5"))


def test_the_name_of_a_node_does_not_show_its_address(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    terminal = Terminal(Client(Renaming(running.world.transport())), capsys)
    shown = terminal.type("report", "basic", "--file", str(tmp_path / "a.tar.gz"), "-o", "json")
    found = contents(tmp_path / "a.tar.gz")
    assert any(re.fullmatch(r"objects/nodes/address-\d+\.yaml", each) for each in found)
    assert not [name for name, text in (*found.items(), ("output", shown)) if "10.9.8.5" in name + text]


def test_what_the_user_may_not_read_is_named(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    client = Client(Refusing(running.world.transport(), CONFIG_MAPS.plural, "nodes"))
    found = Terminal(client, capsys).document("report", "basic", "--file", str(tmp_path / "a.tar.gz"))
    unread = {each["what"] for each in found["unread"]}
    assert CONFIG_MAPS.plural in unread
    assert any(each.startswith("nodes/") for each in unread)
    assert "not in it: configmaps: you may not read them\n" in contents(tmp_path / "a.tar.gz")["index.txt"]


class Silent(ReadOnly):
    """A transport of a server that reaches no kubelet, as if all nodes were lost."""

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        raise TransportError("GET", request.url, "no route to 10.9.8.5")


def test_logs_of_lost_nodes_are_left_out(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    client = Client(Silent(running.world.transport()))
    found = Terminal(client, capsys).document("report", "basic", "--file", str(tmp_path / "a.tar.gz"))
    assert "objects/pods/basic-tikv-0.yaml" in found["contains"]
    assert not [each for each in found["contains"] if each.startswith("logs/")]
    why = {each["what"]: each["why"] for each in found["unread"]}
    assert re.search(r"no route to address-\d+", why["logs/basic-tikv-0/tikv.log"])


class _Torn(FakeStream):
    """A log that ends after a line."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"the first line\n"
        raise ConnectionLost("GET", "/log", "the kubelet went")


class Tearing(ReadOnly):
    """A transport whose logs break."""

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return _Torn(answer(200))


def test_a_log_that_breaks_is_kept_as_far_as_it_came(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    client = Client(Tearing(running.world.transport()))
    found = Terminal(client, capsys).document("report", "basic", "--file", str(tmp_path / "a.tar.gz"))
    assert "the first line\n" == contents(tmp_path / "a.tar.gz")["logs/basic-pd-0/pd.log"]
    assert "logs/basic-pd-0/pd.log" in {each["what"] for each in found["unread"]}


def test_an_existing_file_stays_and_a_broken_report_leaves_none(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_text("mine")
    with pytest.raises(Failure, match=f"{path} exists: name another one with --file"):
        Terminal(running.admin, capsys).type("report", "basic", "--file", str(path))
    assert "mine" == path.read_text()
    with pytest.raises(ConnectionError):
        Terminal(Client(Breaking(running.world.transport())), capsys).type(
            "report", "basic", "--file", str(tmp_path / "b.tar.gz")
        )
    assert [path] == list(tmp_path.iterdir())


class Breaking(ReadOnly):
    """A transport that breaks when pods are read."""

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if f"/{PODS.plural}" in request.url:
            raise ConnectionError("broken")
        return super().request(request)
