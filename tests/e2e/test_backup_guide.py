"""The commands of docs/backup.md run in order and show the documented output."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from backup_manager.key_management import decrypted
from ports.sql import SqlLogin
from rehearsal.backups import backup_manager
from rehearsal.world import COMMANDS
from sandbox.dataplane.commands import Surroundings
from tests.backup_manager.storage.conftest import s3, servers
from tests.backup_manager.storage.servers import S3
from tests.e2e import operators, worlds
from tests.e2e.guides import KUBECTL, Shell, anchor, commands, section
from tests.e2e.operators import ROOT

__all__ = ["s3", "servers"]

GUIDE = ROOT / "docs" / "backup.md"

_BLOCK = re.compile(r"^```(console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_link_of_the_guide_leads_somewhere() -> None:
    text = GUIDE.read_text()
    headings = {anchor(each) for each in re.findall(r"^## (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = target.partition("#")
        assert (GUIDE.parent / path).exists() if path else heading in headings, target


def test_nothing_in_the_guide_looks_like_code_and_is_not_run() -> None:
    fences = re.findall(r"^```(\w*)$", GUIDE.read_text(), re.MULTILINE)
    assert {"console", "yaml"} == set(fences[::2])


def test_the_sample_takes_the_steps_of_the_guide() -> None:
    """Object by object, but for those that the guide alone has."""
    of_guide = {_name(each): each for _, block in _blocks() for each in yaml.safe_load_all(block)}
    of_sample = {
        _name(each): each for each in yaml.safe_load_all((ROOT / "manifests" / "samples" / "backup.yaml").read_text())
    }
    same = ("PersistentVolumeClaim backups", "Role tidb-backup-manager", "Job write", "Job look")
    assert [of_guide[each] for each in same] == [of_sample[each] for each in same]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.rule("KMS-5")
def test_the_commands_of_the_guide_show_the_documented_output(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    for name, block in _blocks():
        (tmp_path / name).write_text(block)
    for name, value in (s3.environ | {"AWS_ENDPOINT_URL_KMS": s3.url}).items():
        monkeypatch.setenv(name, value)
    with (
        worlds.sandbox(tmp_path, own_commands=dict.fromkeys(COMMANDS, _decrypting_manager)) as place,
        operators.running(place.new_log(), place.environment()),
    ):
        shell = Shell(place, tmp_path)
        text = GUIDE.read_text()
        begin_of_kms, _ = section(text, "A password that AWS KMS decrypts")
        for part in _BLOCK.finditer(text):
            if part.start() > begin_of_kms and not (tmp_path / "aws").exists():
                _prepare_kms(s3, shell, tmp_path)
                place.data_plane.sql().execute(SqlLogin("basic-tidb.default", 4000, "root"), [_NEW_PASSWORD])
            line = text.count("\n", 0, part.start()) + 1
            for command, expected in commands(part[2]) if part[1] == "console" else ():
                shell.type(command, expected, f"{GUIDE.name}:{line} {command}")


def _decrypting_manager(surroundings: Surroundings) -> int:
    """`backup-manager` as its image starts it: with what KMS decrypts."""
    launch = surroundings.launch
    return backup_manager(replace(surroundings, launch=replace(launch, env=decrypted(launch.env))))


_PASSWORD = "hunter2"
_NEW_PASSWORD = f"SET PASSWORD FOR 'root'@'%' = '{_PASSWORD}'"
_AWS = f"""#!{sys.executable}
import base64, pathlib, sys
import boto3

given = dict(zip(sys.argv[3::2], sys.argv[4::2]))
plain = pathlib.Path(given["--plaintext"].removeprefix("fileb://")).read_bytes()
kms = boto3.client("kms", region_name="us-east-1")
print(base64.b64encode(kms.encrypt(KeyId=given["--key-id"], Plaintext=plain)[given["--query"]]).decode())
"""
"""As much of AWS's command as the guide uses."""


def _prepare_kms(s3: S3, shell: Shell, directory: Path) -> None:
    """A key, the command `aws`, and the password in a file."""
    kms = s3.client("kms")
    kms.create_alias(AliasName="alias/backups", TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    (directory / "aws").write_text(_AWS)
    (directory / "aws").chmod(0o755)
    (directory / "password").write_text(_PASSWORD)
    shell.environment["PATH"] = f"{directory}{os.pathsep}{shell.environment['PATH']}"


def _blocks() -> list[tuple[str, str]]:
    """The files of the guide: their name, which stands in their first line, and content."""
    found = [part[2] for part in _BLOCK.finditer(GUIDE.read_text()) if part[1] == "yaml"]
    return [(block.partition("\n")[0].removeprefix("# "), block) for block in found]


def _name(tree: dict[str, dict[str, str]]) -> str:
    return f"{tree['kind']} {tree['metadata']['name']}"
