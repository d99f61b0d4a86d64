"""R22: a field that has no effect in a cluster is named there, with what to write instead."""

from collections.abc import Iterator

import pytest

from apis.decoding import InvalidField, decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from apis.validation import stricter, validate
from cli.fields.effects import differences
from cli.fields.probe import built_objects
from cli.fields.samples import SETTINGS, Pair, pairs
from kube.objects import Json, condition_of
from kube.resources import STATEFUL_SETS
from member import labels
from member.fields import ignored as module
from member.fields.declared import AT_RUN_TIME, NO_EFFECT, fields, fits, last_fit
from member.fields.ignored import NEEDS, ignored
from member.fields.settings import overridden
from ports.clock import FakeClock
from tests.apis.clusters import minimal
from tests.operator_world import OperatorWorld, sample

OWNERS = sorted({path.partition(".")[0] for path in fields()})


def named(spec: Json) -> dict[str, str]:
    """The fields of a spec that are named, each with the message."""
    tc = with_defaults(decode({"metadata": {"name": "c", "namespace": "ns"}, "spec": spec}, TidbCluster))
    return {each.field: each.message for each in ignored(tc, spec)}


def told(cluster: Json) -> list[str]:
    """The findings about a cluster: refusals and named fields; an unreadable cluster counts as refused."""
    try:
        tc = with_defaults(decode(cluster, TidbCluster))
    except InvalidField as error:
        return [str(error)]
    problems = [*validate(tc), *stricter.check(tc, {})] or [*ignored(tc, cluster["spec"]), *overridden(tc)]
    return list(map(str, problems))


def silent(path: str) -> Iterator[str]:
    """The sorts of clusters in which a field, set by itself, changes nothing, and of which nothing is said."""
    for pair in pairs(path, fields()[path], alone=True):
        is_tried = pair.title in SORTS and pair.before != pair.after and not last_fit(path, AT_RUN_TIME)
        if is_tried and not has_effect(pair):
            yield f"{path} {pair.title}"


SORTS = tuple(each.title for each in SETTINGS if each.patch.get("pd", {}) is not None)
"""The settings with their own PD."""


def has_effect(pair: Pair) -> bool:
    """True if an object or a finding differs; half of a reference to another cluster is refused in both cases."""
    before = told(pair.before)
    if set(told(pair.after)) - set(before) or any("spec.cluster" in each for each in before):
        return True
    return bool(differences(built_objects(pair.before), built_objects(pair.after)))


@pytest.mark.slow
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.rule("R22")
def test_no_field_is_silent_in_any_sort_of_cluster(owner: str) -> None:
    own = (path for path in fields() if path.partition(".")[0] == owner)
    assert [] == [each for path in own for each in silent(path)]


def test_storage_of_a_component_without_a_volume_is_named_with_what_to_write_instead() -> None:
    found = named(minimal(tidb={"requests": {"storage": "30Gi", "cpu": "2"}, "storageClassName": "standard"}))
    why = "has no effect, because TiDB has no data volume; remove it, or list volumes in storageVolumes"
    assert {"spec.tidb.requests.storage": why, "spec.tidb.storageClassName": why} == found


def test_a_class_for_further_volumes_is_not_named() -> None:
    volume = {"name": "log", "storageSize": "1Gi", "mountPath": "/log"}
    assert {} == named(minimal(tidb={"storageVolumes": [volume], "storageClassName": "standard"}))


@pytest.mark.parametrize(
    ("image", "instead"),
    [
        ("localhost:5000/tidb:patched", "write baseImage: localhost:5000/tidb and version: patched"),
        ("localhost:5000/tidb", "write baseImage: localhost:5000/tidb"),
        (f"tidb@sha256:{'0' * 64}", f"write baseImage: tidb@sha256:{'0' * 64}"),
    ],
)
@pytest.mark.rule("8.1")
def test_names_an_image_beside_base_image_and_version(image: str, instead: str) -> None:
    why = f"has no effect, because pingcap/tidb:v8.5.2 runs; {instead}"
    assert {"spec.tidb.image": why} == named(minimal(tidb={"image": image, "baseImage": "pingcap/tidb"}))


@pytest.mark.rule("8.1")
def test_an_image_in_use_is_not_named_as_ignored() -> None:
    images: Json = {name: {"image": f"pingcap/{name}:v6.5.0"} for name in ("pd", "tikv", "tidb")}
    assert {} == named(minimal(**images) | {"version": ""})
    assert {} == named(minimal(tidb={"image": "pingcap/tidb:v8.5.2"}))


def test_an_entry_of_a_list_is_named_by_its_place() -> None:
    spec = minimal() | {"pdms": [{"name": "tso", "replicas": 1}, {"name": "scheduling", "replicas": 2}]}
    assert {"spec.pdms[0].replicas", "spec.pdms[1].replicas"} == named(spec).keys()


@pytest.mark.parametrize(("value", "is_named"), [("True", True), ("yes", True), ("true", False), ("false", False)])
def test_names_an_annotation_that_switches_nothing_on(value: str, is_named: bool) -> None:
    meta = {"name": "c", "namespace": "ns", "annotations": {labels.TIDB_SCALE_SELECTOR: value}}
    tc = with_defaults(decode({"metadata": meta, "spec": minimal()}, TidbCluster))
    messages = [problem.message for problem in ignored(tc, minimal())]
    assert is_named == any('only "true" writes the selector of TiDB\'s pods' in message for message in messages)


def test_false_and_default_values_request_nothing() -> None:
    pdms = [{"name": "tso", "replicas": 1, "startTimeout": 30, "maxFailoverCount": 0}]
    assert {} == named(minimal(pd={"mode": "ms", "mountClusterClientSecret": False}) | {"pdms": pdms})


def test_every_declared_field_exists() -> None:
    tables: list[Json] = [dict(NO_EFFECT), dict(NEEDS)]
    assert [] == [glob for table in tables for glob in table if not any(fits(path, glob) for path in fields())]


def test_a_field_without_its_declaration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(NEEDS, "tikv.raftLogVolumeName")
    monkeypatch.setattr(module, "_rows", module._rows.__wrapped__)
    assert "tikv.raftLogVolumeName " in list(silent("tikv.raftLogVolumeName"))


@pytest.mark.slow
def test_a_running_cluster_names_an_ignored_field_once_and_restarts_nothing(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    world.apply(sample("basic"))
    world.run_until_ready()
    before = [each["spec"] for each in world.every(STATEFUL_SETS)]
    world.change(tidb={"image": "localhost:5000/tidb:patched"})
    world.run(5.0)
    world.restart()
    world.run(60.0)
    condition = condition_of(world.cluster()["status"]["conditions"], "FieldsIgnored")
    assert ("True", True) == (condition["status"], "spec.tidb.image" in condition["message"])
    assert [1] == [each["count"] for each in world.events("FieldsIgnored")]
    assert before == [each["spec"] for each in world.every(STATEFUL_SETS)]
    world.change(tidb={"image": None})
    world.run(5.0)
    assert "False" == condition_of(world.cluster()["status"]["conditions"], "FieldsIgnored")["status"]
    world.stop()
