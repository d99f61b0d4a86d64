"""Verification of the files that `backupmeta` lists: the condition Verified."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import pytest

from backup_manager.backup import BackupOptions, run_backup
from backup_manager.outcomes import JobFailed, Unusable
from backup_manager.verify import EXTENT, VerifyOptions, run_verify
from kube.objects import Json
from kube.resources import BACKUPS
from ports.stopping import Stop
from tests.backup_manager.storage.fakes import failing
from tests.backup_manager.worlds import NAME, NAMESPACE, World, message, printing

OPTIONS = VerifyOptions(NAMESPACE, NAME)
DONE = {
    "phase": "Complete",
    "backupPath": "s3://bucket/some/prefix",
    "conditions": [{"type": "Complete", "status": "True"}],
}
FILES = {"1/a.sst": b"one", "1/b.sst": b"three"}


def file(name: str, content: bytes, **other: int) -> bytes:
    size = other.get("size", len(content))
    return message([(1, name.encode()), (2, hashlib.sha256(content).digest()), (11, size)])


def meta(files: Iterable[bytes], *more: tuple[int, bytes]) -> bytes:
    return message([(6, 449_000_000_000), *((4, each) for each in files), *more])


def flat() -> dict[str, bytes]:
    """A backup of the first version, whose `backupmeta` lists all files."""
    return {**FILES, "backupmeta": meta(file(name, content) for name, content in FILES.items())}


def indexed() -> dict[str, bytes]:
    """A backup of the second version: two levels of files that list files, and one with schemas."""
    inner = message([(2, file(name, content)) for name, content in FILES.items()])
    outer = message([(1, file("inner.meta", inner))])
    schemas = message([(3, b"\x0a\x01x")])
    index = message([(1, file("outer.meta", outer))])
    schema_index = message([(1, file("schemas.meta", schemas))])
    named = {"inner.meta": inner, "outer.meta": outer, "schemas.meta": schemas}
    return {**FILES, **named, "backupmeta": meta([], (13, index), (14, schema_index))}


def verified(world: World) -> Json:
    status = world.status(BACKUPS)
    assert "Complete" == status["phase"]
    found: Json = next(each for each in status["conditions"] if each["type"] == "Verified")
    return found


@pytest.mark.parametrize(("objects", "count"), [(flat(), 2), (indexed(), 5)], ids=["files", "indexes"])
def test_all_files_with_their_sizes_are_verified(world: World, objects: dict[str, bytes], count: int) -> None:
    world.backup(status=DONE)
    world.storage.objects |= objects
    run_verify(OPTIONS, world.outside())
    condition = verified(world)
    assert ("True", "FilesFound") == (condition["status"], condition["reason"])
    assert condition["message"].startswith(f"all files are there with their sizes: {count}, together ")
    assert "checksums" not in condition["message"]
    run_verify(replace(OPTIONS, checksums=True), world.outside())
    assert verified(world)["message"].endswith(f"; {count} checksums are right")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("1/a.sst", None, "1/a.sst is missing"),
        ("1/b.sst", b"thre", "1/b.sst has 4 bytes instead of 5"),
        ("inner.meta", b"x", "inner.meta, which names other files, is not what BR wrote"),
        ("outer.meta", None, "cannot read outer.meta in s3://bucket/some/prefix"),
        ("backupmeta", None, "cannot read backupmeta in s3://bucket/some/prefix"),
        ("backupmeta", b"\xff", "backupmeta"),
    ],
)
def test_names_missing_and_different_files(world: World, name: str, content: bytes | None, says: str) -> None:
    world.backup(status=DONE)
    world.storage.objects |= indexed()
    if content is None:
        del world.storage.objects[name]
    else:
        world.storage.objects[name] = content
    with pytest.raises(JobFailed):
        run_verify(OPTIONS, world.outside())
    condition = verified(world)
    # an unreadable file may be encrypted
    reason = "NotVerified" if content in {b"x", b"\xff"} else "FilesDiffer"
    assert ("False", reason) == (condition["status"], condition["reason"])
    assert says in condition["message"]


def test_a_checksum_detects_different_content_of_the_same_size(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects |= flat() | {"1/a.sst": b"two"}
    run_verify(OPTIONS, world.outside())
    with pytest.raises(JobFailed, match=r"FilesDiffer: of 2 files: 1/a\.sst has another checksum"):
        run_verify(replace(OPTIONS, checksums=True), world.outside())
    assert "False" == verified(world)["status"]


def test_names_the_first_of_many_differences(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects["backupmeta"] = meta(file(f"{number}.sst", b"x") for number in range(20))
    with pytest.raises(JobFailed, match=r"of 20 files: 0\.sst is missing; .*; 2\.sst is missing; and 17 more"):
        run_verify(OPTIONS, world.outside())


def test_a_size_that_br_did_not_note_is_not_compared(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects |= {"a.sst": b"abc", "backupmeta": meta([file("a.sst", b"abc", size=0)])}
    run_verify(OPTIONS, world.outside())
    assert "True" == verified(world)["status"]


def test_the_condition_changes_with_the_files(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects |= flat()
    missing = world.storage.objects.pop("1/a.sst")
    with pytest.raises(JobFailed):
        run_verify(OPTIONS, world.outside())
    world.storage.objects["1/a.sst"] = missing
    run_verify(OPTIONS, world.outside())
    assert "True" == verified(world)["status"]


def test_verifies_files_at_the_place_of_the_backup(world: World) -> None:
    world.backup(status=DONE, s3={"provider": "aws", "bucket": "bucket", "prefix": "other"})
    world.storage.objects |= flat()
    run_verify(OPTIONS, world.outside())
    assert ["s3://bucket/some/prefix"] == [str(location) for location, _ in world.opened]


def test_rejects_a_backup_without_files(world: World) -> None:
    world.backup(status={"phase": "Running"})
    with pytest.raises(Unusable, match="is not Complete"):
        run_verify(OPTIONS, world.outside())
    other = World()
    other.backup(status=DONE, br=None)
    with pytest.raises(Unusable, match="only a snapshot by BR names its files"):
        run_verify(OPTIONS, other.outside())


def backed_up(world: World, stop: Stop | None = None) -> None:
    world.backup()
    world.launcher.script = printing(then=lambda: world.storage.objects.update(flat()))
    run_backup(BackupOptions(NAMESPACE, NAME, tikv_version="v8.5.0"), world.outside(stop))


def test_a_backup_is_verified_when_it_is_complete(world: World) -> None:
    backed_up(world)
    assert "all files are there with their sizes: 2, together 8 B" == verified(world)["message"]


def test_a_backup_without_its_files_is_complete_but_not_verified(world: World) -> None:
    world.backup()
    world.launcher.script = printing(then=lambda: world.storage.objects.update(backupmeta=flat()["backupmeta"]))
    run_backup(BackupOptions(NAMESPACE, NAME, tikv_version="v8.5.0"), world.outside())
    assert ("False", "FilesDiffer") == (verified(world)["status"], verified(world)["reason"])


def test_a_variable_sets_the_extent_of_the_verification(world: World) -> None:
    world.environ[EXTENT] = "checksums"
    backed_up(world)
    assert verified(world)["message"].endswith("; 2 checksums are right")
    other = World()
    other.environ[EXTENT] = "nothing"
    backed_up(other)
    assert "Verified" not in other.conditions(BACKUPS)


def test_rejects_an_unknown_extent_before_the_backup(world: World) -> None:
    world.environ[EXTENT] = "everything"
    with pytest.raises(Unusable, match=r"=everything in spec\.env must be sizes, checksums or nothing"):
        backed_up(world)
    assert [] == world.launcher.commands


def test_storage_that_fails_leaves_the_backup_complete(world: World) -> None:
    world.environ[EXTENT] = "sizes"
    # the fourth list is the first of the verification: the checks take two, the page one
    world.storage.fail = failing("list", *range(3, 20))
    backed_up(world)
    assert ("False", "NotVerified") == (verified(world)["status"], verified(world)["reason"])
