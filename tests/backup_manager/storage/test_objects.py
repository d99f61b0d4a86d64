"""All providers behave alike (backup.md 2.5)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from backup_manager.storage.checks import PROBE, require_free, require_usable
from backup_manager.storage.deletion import Pace, delete_all
from backup_manager.storage.errors import BadLocation, BucketMissing, ObjectMissing, StorageError
from backup_manager.storage.objects import StoredObject, open_storage
from backup_manager.storage.parts import MIB, Parts
from ports.clock import FakeClock
from ports.stopping import Stop
from tests.backup_manager.storage.conftest import Place, Start

pytestmark = pytest.mark.slow


def listed(place: Place, page: int = 1000) -> list[StoredObject]:
    pages = place.storage().pages(page)
    return sorted((each for page in pages for each in page), key=lambda each: each.key)


@pytest.mark.rule("backup-2.5")
def test_objects_are_listed_with_their_sizes_below_the_prefix_alone(place: Place) -> None:
    place.put("backupmeta", b"12345")
    place.put("1/2_3.sst", b"123")
    place.server.put(place.bucket, "some/prefix2/other", b"not ours")
    place.server.put(place.bucket, "some/other", b"not ours")
    assert [StoredObject("1/2_3.sst", 3), StoredObject("backupmeta", 5)] == listed(place)


def test_a_page_has_at_most_the_requested_size(place: Place) -> None:
    for number in range(5):
        place.put(f"{number}.sst")
    sizes = [len(page) for page in place.storage().pages(2)]
    assert 5 == sum(sizes)
    assert max(sizes) <= 2


def test_reads_a_written_object(place: Place) -> None:
    storage = place.storage()
    storage.write("backupmeta", b"\0\xff old")
    storage.write("backupmeta", b"\0\xff new")
    assert b"\0\xff new" == storage.read("backupmeta")


def test_downloads_in_other_parts_than_it_uploaded(place: Place) -> None:
    storage = place.storage()
    content = b"".join(number.to_bytes(4, "big") for number in range(11 * MIB // 4)) + b"the end"
    chunks = (content[start : start + MIB] for start in range(0, len(content), MIB))
    assert storage.size("backup.tgz") is None
    storage.upload("backup.tgz", chunks, Parts(5 * MIB, 2))
    assert len(content) == storage.size("backup.tgz")
    assert content == b"".join(storage.download("backup.tgz", Parts(4 * MIB)))
    storage.upload("small", iter([b"a", b"", b"b"]), Parts())
    storage.upload("empty", iter([]), Parts())
    assert [b"ab", b""] == [b"".join(storage.download(key, Parts())) for key in ("small", "empty")]


def test_a_broken_upload_leaves_the_previous_object(place: Place) -> None:
    def broken(number: int) -> Iterator[bytes]:
        for _ in range(number):
            yield bytes(6 * MIB)
        raise InterruptedError

    storage = place.storage()
    storage.write("there", b"old")
    for key, number in (("new", 0), ("new", 2), ("there", 2)):
        with pytest.raises(InterruptedError):
            storage.upload(key, broken(number), Parts(5 * MIB, 2))
    assert [StoredObject("there", 3)] == listed(place)
    assert b"old" == storage.read("there")


def test_a_download_reports_a_missing_or_replaced_object(place: Place) -> None:
    storage = place.storage()
    with pytest.raises(ObjectMissing):
        list(storage.download("nothing", Parts()))
    storage.write("archive", bytes(20))
    coming = storage.download("archive", Parts(10))
    next(coming)
    storage.write("archive", b"1" * 20)
    with pytest.raises(StorageError, match="cannot read archive in"):
        next(coming)


def test_reads_foreign_objects(place: Place) -> None:
    place.put("backupmeta", b"\0\xff meta")
    assert b"\0\xff meta" == place.storage().read("backupmeta")


def test_a_missing_object_is_named(place: Place) -> None:
    place.put("other")
    with pytest.raises(ObjectMissing, match=r"cannot read backupmeta in .*some/prefix"):
        place.storage().read("backupmeta")


def test_keys_with_unusual_characters_are_listed_read_and_deleted(place: Place) -> None:
    keys = sorted(["a b", "täble#", "per%20cent", "plus+", "q?uestion&"])
    for key in keys:
        place.put(key, key.encode())
    assert keys == [each.key for each in listed(place)]
    assert [key.encode() for key in keys] == [place.storage().read(key) for key in keys]
    place.storage().delete(keys)
    assert [] == listed(place)


def test_deleting_a_missing_object_is_no_error_and_deletes_the_others(place: Place) -> None:
    for key in ("a", "b", "c"):
        place.put(key)
    place.storage().delete(["nothing", "a", "gone", "b"])
    assert ["c"] == [each.key for each in listed(place)]


@pytest.mark.parametrize("name", ["s3", "azure", "local"])
def test_names_a_missing_bucket_with_its_provider(servers: Start, name: str) -> None:
    server = servers(name)
    location = server.location("no-such-bucket")
    with pytest.raises(BucketMissing) as raised:
        list(open_storage(location, server.environ).pages())
    message = str(raised.value)
    assert location.path in message or location.bucket in message
    assert location.provider in message
    assert "there is no" in message or "nothing is mounted" in message
    assert not raised.value.may_pass


def test_checking_a_place_leaves_it_unchanged(place: Place) -> None:
    require_usable(place.storage())
    assert [] == listed(place)


def test_a_prefix_with_objects_is_not_free(place: Place) -> None:
    storage = place.storage()
    require_free(storage)
    place.put(PROBE)
    require_free(storage)  # left by a killed pod
    place.put("backupmeta", b"1")
    with pytest.raises(BadLocation, match=r"it is not empty \(backupmeta is there\); give each Backup a prefix"):
        require_free(storage)


@pytest.mark.parametrize("folder", ["", "sub/", "sub/deeper/"])
def test_a_folder_of_a_console_does_not_count_as_an_object(s3_place: Place, folder: str) -> None:
    """It is an empty object whose name ends with a slash; the library lists it without the slash."""
    s3_place.put(folder)
    storage = s3_place.storage()
    require_usable(storage)
    require_free(storage)
    storage.write("sub/backupmeta", b"1")
    delete_all(storage, Pace(rounds=2), FakeClock(), Stop(), lambda _done: None)
    assert not any(each.size for each in listed(s3_place))


@pytest.mark.parametrize("key", ["a//b", "./a", "a/../b"])
def test_an_object_whose_name_cannot_be_used_is_named(s3_place: Place, key: str) -> None:
    s3_place.put(key, b"1")
    message = f'an object\'s name has an empty part, `.` or `..`: "some/prefix/{key}"; rename or remove it'
    with pytest.raises(BadLocation) as raised:
        require_usable(s3_place.storage())
    assert message in str(raised.value)


def test_rejects_keys_outside_the_prefix(place: Place) -> None:
    for key in ("../other", "a/../../b", "", "/abs", "a//b"):
        with pytest.raises(BadLocation, match="is no object's name"):
            place.storage().delete([key])


def test_an_empty_prefix_is_the_whole_bucket(place: Place) -> None:
    place.server.put(place.bucket, "top", b"1")
    place.put("below", b"22")
    whole = open_storage(replace(place.location, prefix=""), place.server.environ)
    found = {each.key: each.size for page in whole.pages() for each in page}
    assert {"top": 1, "some/prefix/below": 2} == found
