"""`tidb-operator certs` makes a cluster's Secrets, with which the operator finds no problem."""

import argparse
import base64
from pathlib import Path

import pytest

from cli import certs
from cli.failures import Failure
from cli.manifests import Manifest, parse, read
from dataplane.certificates import CA, CERTIFICATE, KEY, Role, authority_of, check_trust
from dataplane.certificates import read as shown
from kube.objects import Json
from tests.operator_world import SAMPLES

_SECRETS = {
    "tls-cluster-client-secret",
    "tls-discovery-cluster-secret",
    "tls-pd-cluster-secret",
    "tls-tikv-cluster-secret",
    "tls-tidb-cluster-secret",
    "tls-tidb-server-secret",
    "tls-tidb-client-secret",
}


def made(documents: list[Manifest], directory: Path, days: int = certs.DAYS) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in certs.secrets(documents, directory, days)}


def content(secret: Json) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


@pytest.mark.slow
@pytest.mark.rule("9.1")
def test_one_authority_signs_all_secrets_of_a_cluster(tmp_path: Path) -> None:
    found = made(read(SAMPLES / "tls.yaml"), tmp_path)
    assert _SECRETS == found.keys()
    ca = (tmp_path / "ca.crt").read_bytes()
    for secret in found.values():
        data = content(secret)
        assert ca == data[CA]
        for role in Role:
            check_trust(data[CERTIFICATE], data[KEY], role, ca)
        assert authority_of(ca, shown(data[CERTIFICATE], data[KEY])) is not None
    pd = content(found["tls-pd-cluster-secret"])
    certificate = shown(pd[CERTIFICATE], pd[KEY])
    assert 365 == (certificate.ends - certificate.begins).days
    for host in ("tls-pd", "tls-pd-0.tls-pd-peer.default.svc", "tls-pd.default", "127.0.0.1"):
        assert certificate.covers(host), host


@pytest.mark.slow
def test_a_second_run_reuses_the_authority(tmp_path: Path) -> None:
    document = parse((SAMPLES / "tls.yaml").read_bytes(), "f")
    first, second = made(document, tmp_path), made(document, tmp_path, days=3)
    one, other = (content(each["tls-pd-cluster-secret"]) for each in (first, second))
    assert one[CA] == other[CA]
    assert one[CERTIFICATE] != other[CERTIFICATE]
    (tmp_path / "ca.key").unlink()
    with pytest.raises(Failure, match=r"ca.crt is there, but .*ca.key is not; put it there"):
        made(document, tmp_path)


def test_creates_no_secret_that_the_manifest_has(tmp_path: Path) -> None:
    secrets = [f"---\n{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}\n" for name in _SECRETS]
    text = (SAMPLES / "tls.yaml").read_text() + "".join(secrets)
    assert {} == made(parse(text.encode(), "f"), tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_fails_for_a_cluster_without_tls(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"no cluster lacks a Secret for TLS; set spec.tlsCluster.enabled"):
        certs.run(read(SAMPLES / "basic.yaml"), tmp_path / "ca", 1)


def test_ignores_objects_of_other_api_groups(tmp_path: Path) -> None:
    text = (
        (SAMPLES / "tls.yaml").read_text().replace("pingcap.com/", "pincap.com/").replace("replicas: 1", "replicas: x")
    )
    assert "pincap.com" in text
    assert {} == made(parse(text.encode(), "f"), tmp_path)


def test_names_the_field_of_a_cluster_that_it_cannot_read(tmp_path: Path) -> None:
    text = (
        """{apiVersion: pingcap.com/v1alpha1, kind: DMCluster, metadata: {name: a}, spec: {master: {replicas: few}}}"""
    )
    with pytest.raises(Failure, match=r'f, document 1: spec.master.replicas: "few": must be an integer'):
        made(parse(text.encode(), "f"), tmp_path)


def test_names_the_way_out_if_openssl_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match="openssl is not in PATH; install it, or have cert-manager make the Secrets"):
        made(read(SAMPLES / "tls.yaml"), tmp_path)


@pytest.mark.parametrize("days", ["0", "-1", "36501", "1.5", "many"])
def test_refuses_days_outside_1_to_36500(capsys: pytest.CaptureFixture[str], days: str) -> None:
    parser = argparse.ArgumentParser()
    certs.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([f"--days={days}"])
    assert f"argument --days: '{days}' is no number of days from 1 to 36500" in capsys.readouterr().err


@pytest.mark.slow
def test_certificates_do_not_outlast_their_authority(tmp_path: Path) -> None:
    document = read(SAMPLES / "tls.yaml")
    assert made(document, tmp_path / "new", days=4000)
    made(document, tmp_path / "ten-years", days=1)
    assert made(document, tmp_path / "ten-years", days=3649)
    with pytest.raises(Failure, match=r"ca.crt ends in less than 3651 days; give fewer --days, or another CA"):
        made(document, tmp_path / "ten-years", days=3651)


def test_names_an_authority_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).write_text("nonsense")
    with pytest.raises(Failure, match=r"ca.crt is of no use: Could not .*certificate"):
        made(read(SAMPLES / "tls.yaml"), tmp_path)
