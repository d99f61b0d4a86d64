"""Flags, environment and secrets of the command (backup.md 7.1, 7.2)."""

import json
import stat
from pathlib import Path

import pytest

from backup_manager.commands import JOBS
from backup_manager.environment import notify_sidecars, prepared
from backup_manager.flags import CHOICES, FLAGS, MissingFlags, parse
from backup_manager.main import main, ready
from backup_manager.outcomes import Undecrypted
from backup_manager.redaction import REDACTED, Secrets
from kube.resources import BACKUPS, RESTORES
from tests.backup_manager.worlds import World

OF_V1_6 = {
    "backup": "namespace backupName tikvVersion client-tls cluster-tls skipClientCA mode subcommand commit-ts "
    "truncate-until initialize",
    "export": "namespace backupName bucket client-tls skipClientCA storageType",
    "restore": "namespace restoreName tikvVersion client-tls cluster-tls skipClientCA mode pitrRestoredTs prepare "
    "target-az use-fsr abort",
    "import": "namespace restoreName client-tls skipClientCA backupPath",
    "clean": "namespace backupName",
    "compact": "namespace resourceName",
}

OF_V1_7 = {"restore": ["replicationPhase"]}


def value_of(command: str, name: str) -> str:
    """A value that the flag accepts."""
    if isinstance(FLAGS[command][name], bool):
        return "true"
    return CHOICES.get((command, name), ["x"])[-1]


@pytest.mark.parametrize("command", OF_V1_6)
@pytest.mark.rule("backup-7.2")
def test_every_flag_of_v1_6_is_accepted_in_both_notations(command: str) -> None:
    names = OF_V1_6[command].split()
    assert {*names, *OF_V1_7.get(command, ())} == FLAGS[command].keys()
    values = {name: value_of(command, name) for name in FLAGS[command]}
    wanted = {name: value == "true" or value for name, value in values.items()}
    assert wanted == parse([command, *(f"--{name}={value}" for name, value in values.items())]).values
    separate = [word for name, value in values.items() for word in (f"--{name}", value)]
    assert wanted == parse([command, *separate]).values


@pytest.mark.rule("backup-7.2")
def test_defaults() -> None:
    backup = parse(["backup", "--namespace=ns", "--backupName=b"])
    assert ("4.0", "snapshot", "log-start", "0", "0") == tuple(
        backup.text(name) for name in ("tikvVersion", "mode", "subcommand", "commit-ts", "truncate-until")
    )
    assert not backup.is_set("cluster-tls")
    restore = parse(["restore", "--namespace=ns", "--restoreName=r"])
    assert ("0", "", False) == tuple(restore.values[name] for name in ("pitrRestoredTs", "target-az", "use-fsr"))


@pytest.mark.rule("backup-7.2")
def test_a_bare_flag_is_true_and_go_values_are_read() -> None:
    words = ["backup", "--namespace=ns", "--backupName=b"]
    assert parse([*words, "--cluster-tls"]).is_set("cluster-tls")
    for text, value in {"T": True, "1": True, "FALSE": False, "0": False}.items():
        assert value is parse([*words, f"--cluster-tls={text}"]).is_set("cluster-tls")


@pytest.mark.rule("backup-7.2")
def test_the_kubeconfig_may_stand_before_and_behind_the_command() -> None:
    words = ["clean", "--namespace=ns", "--backupName=b"]
    assert ["", "f", "f", "f"] == [
        parse(argv).kubeconfig
        for argv in (words, ["-k", "f", *words], [*words, "--kubeconfig=f"], ["--kubeconfig", "f", *words])
    ]


@pytest.mark.rule("backup-7.2")
def test_empty_flags_are_named() -> None:
    with pytest.raises(MissingFlags, match=r"^error: some flags \[--namespace --backupName\] are missing\.$"):
        parse(["clean"])
    with pytest.raises(MissingFlags, match=r"\[--mode\]"):
        parse(["backup", "--namespace=ns", "--backupName=b", "--mode="])


@pytest.mark.parametrize(("command", "name"), CHOICES)
@pytest.mark.rule("backup-7.2")
def test_an_unknown_value_is_named_with_the_allowed_ones(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in CHOICES[command, name]:
        assert value == parse([command, *NAMED[command], f"--{name}={value}"]).text(name)
    with pytest.raises(SystemExit):
        parse([command, *NAMED[command], f"--{name}=other"])
    told = capsys.readouterr().err
    assert f"argument --{name}: invalid choice: 'other' (choose from '{CHOICES[command, name][0]}'" in told


NAMED = {
    "backup": ["--namespace=ns", "--backupName=b"],
    "restore": ["--namespace=ns", "--restoreName=r"],
}


@pytest.mark.parametrize("argv", [[], ["clean", "--nonsense=1"], ["backup", "--cluster-tls=maybe"]])
@pytest.mark.rule("backup-7.2")
def test_an_unreadable_command_line_ends_with_a_message(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    assert 2 == ended.value.code
    assert "backup-manager" in capsys.readouterr().err


@pytest.mark.rule("backup-7")
def test_every_command_has_a_job() -> None:
    assert FLAGS.keys() == JOBS.keys()


def test_without_a_cluster_the_error_names_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main(["clean", "--namespace=ns", "--backupName=b"], {})
    assert "backup-manager: " in capsys.readouterr().err


@pytest.mark.rule("backup-7.1")
def test_the_key_of_google_is_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text("an older one, which all may read")
    found = prepared({"GCS_SERVICE_ACCOUNT_JSON_KEY": "{}"}, path)
    assert str(path) == found["GOOGLE_APPLICATION_CREDENTIALS"]
    assert ("{}", 0o600) == (path.read_text(), stat.S_IMODE(path.stat().st_mode))


@pytest.mark.rule("backup-7.1")
def test_a_mounted_key_stays_and_an_empty_one_does_not_count(tmp_path: Path) -> None:
    name = "GOOGLE_APPLICATION_CREDENTIALS"
    path = tmp_path / "key.json"
    assert {} == prepared({name: str(path)})
    path.touch()
    assert {} == prepared({name: str(path)})
    path.write_text("{}")
    assert {name: str(path)} == prepared({name: str(path)})


@pytest.mark.parametrize(
    ("argv", "condition"),
    [
        (["backup", "--namespace=ns", "--backupName=demo"], "Failed"),
        (["clean", "--namespace=ns", "--backupName=demo"], "CleanFailed"),
        (["restore", "--namespace=ns", "--restoreName=demo"], "Failed"),
    ],
)
@pytest.mark.rule("backup-7.1")
def test_a_value_that_kms_does_not_decrypt_is_in_the_status(world: World, argv: list[str], condition: str) -> None:
    (world.restore if "restore" in argv else world.backup)()
    world.environ = {"KMS_ENCRYPTED_BACKUP_MANAGER_PASSWORD": "no base64!", "AWS_REGION": "eu-west-1"}
    with pytest.raises(Undecrypted):
        ready(parse(argv), world.outside())
    status = world.status(RESTORES if "restore" in argv else BACKUPS)
    assert (condition, "KMSDecryptionFailed") == (status["phase"], status["conditions"][-1]["reason"])
    assert "KMS_ENCRYPTED_BACKUP_MANAGER_PASSWORD is not base64" in status["conditions"][-1]["message"]
    assert "no base64!" not in status["conditions"][-1]["message"]


@pytest.mark.rule("backup-7.1")
def test_writes_the_file_for_sidecars_if_possible(tmp_path: Path) -> None:
    notify_sidecars(tmp_path / "nothing" / "main-terminated")
    notify_sidecars(tmp_path / "main-terminated")
    assert ["main-terminated"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.rule("backup-7.1")
def test_executes_an_unknown_command(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[tuple[str, list[str]]] = []

    def execute(file: str, words: list[str], _environ: object) -> None:
        executed.append((file, words))
        raise SystemExit

    monkeypatch.setattr("os.execvpe", execute)
    with pytest.raises(SystemExit):
        main(["sh", "-c", "true"], {})
    assert [("sh", ["sh", "-c", "true"])] == executed


def test_secrets_are_cut_from_texts_in_every_spelling() -> None:
    key = json.dumps({"type": "service_account", "private_key": "BEGIN\nabcdef\nEND", "private_key_id": "id-12345"})
    secrets = Secrets(
        {
            "AWS_SECRET_ACCESS_KEY": "a+b/c=d",
            "BACKUP_MANAGER_PASSWORD": "hunter2",
            "AZURE_STORAGE_KEY": "a2V5",
            "GCS_SERVICE_ACCOUNT_JSON_KEY": key,
            "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token",
            "S3_PROVIDER": "aws",
        }
    )
    text = f"a+b/c=d a%2Bb%2Fc%3Dd hunter2 a2V5 abcdef id-12345 {key} ?sas-token=sv%3D1&x=1 --password=short"
    cut = secrets.cut_from(text)
    for secret in ("a+b", "a%2Bb", "hunter2", "a2V5", "abcdef", "id-12345", "sv%3D1", "short"):
        assert secret not in cut
    assert "&x=1" in cut
    assert "aws /var/run/token" == secrets.cut_from("aws /var/run/token")
    assert "hunter2" not in repr(secrets)
    event = secrets.redact(None, "", {"line": "hunter2", "words": ["x", "hunter2"], "n": 1, "e": ValueError("hunter2")})
    assert {"line": REDACTED, "words": ["x", REDACTED], "n": 1, "e": f"ValueError('{REDACTED}')"} == event


def test_reports_an_unknown_command_that_is_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert 127 == main(["no-such-program"], {"PATH": "/bin"})
    told = capsys.readouterr().err
    assert told.startswith("backup-manager: no-such-program is none of its commands (")
    assert told.endswith("and no program: No such file or directory\n")
