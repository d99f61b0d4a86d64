"""No value of a spec runs in a shell, whatever is in it, and none breaks a script."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, DM_CLUSTERS, JOBS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.fields.objects import desired_objects
from simulate.rich_specs import KINDS, rich_spec
from simulate.type_mutants import MutantWorld
from tests.security.shell_texts import CANARY, SHELLS, Room, shell_texts, syntax_error

_PAYLOADS = (
    f"$({CANARY})",
    f"`{CANARY}`",
    f"';{CANARY};'",
    f'";{CANARY};"',
    f";{CANARY}",
    f"\n{CANARY}\n",
    f"&& {CANARY}",
    f"|{CANARY}",
    f"${{x:-$({CANARY})}}",
    f"\\$({CANARY})",
    f"$$({CANARY})",
    f"<({CANARY})",
    f"$({CANARY}",
    "'",
    '"',
    "\\",
    "`",
    "${",
    f'"""\n[x]\ny = "{CANARY}',
    f"%s%n#{{}}: - &a *a !b {CANARY}",
)
_WORKLOADS = (STATEFUL_SETS, DEPLOYMENTS, JOBS, CONFIG_MAPS)
_MODELS: Mapping[Resource, type[TidbCluster] | type[DMCluster]] = {TIDB_CLUSTERS: TidbCluster, DM_CLUSTERS: DMCluster}
_GENERATIONS: Sequence[Json] = ({}, {"startScriptVersion": "v2"})

Path_ = tuple[str | int, ...]


@pytest.mark.slow
@pytest.mark.thorough
def test_values_of_specs_do_not_run(tmp_path: Path) -> None:
    assert _judge(list(_cases())[::970], Room(tmp_path)) > 0


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("component", "patch"),
    [
        ("tidb", {"arguments": [f"$({CANARY})"]}),
        ("tidb", {"arguments": [f"$({CANARY}"]}),
        (
            "tidb",
            {
                "storageVolumes": [{"name": "sl", "storageSize": "1Gi", "mountPath": f"/x/$({CANARY})"}],
                "slowLogVolumeName": "sl",
                "separateSlowLog": True,
            },
        ),
        ("tiflash", {"config": {"config": {"logger": {"log": f"/data0/;{CANARY}", "errorlog": f"/data0/e;{CANARY}"}}}}),
        ("tikv", {"podSecurityContext": {"sysctls": [{"name": "a", "value": f"1;{CANARY}"}]}}),
    ],
)
def test_reported_values_do_not_run(component: str, patch: Json, shell: str, tmp_path: Path) -> None:
    spec = rich_spec(TIDB_CLUSTERS)
    spec[component] |= patch
    texts = _texts(TIDB_CLUSTERS, spec)
    assert any(CANARY in text for text in texts)
    room = Room(tmp_path)
    assert [] == [text for text in texts if CANARY in text and room.sings(text, shell)]
    assert [] == [text for text in texts if syntax_error(text, shell)]


def test_arguments_of_tidb_still_refer_to_the_environment() -> None:
    spec = rich_spec(TIDB_CLUSTERS)
    spec["tidb"]["arguments"] = ["--name=${POD_NAME} --zone=$ZONE", "--price=5$"]
    texts = [text for text in _texts(TIDB_CLUSTERS, spec) if "--price" in text]
    assert ['set -- "$@" "--name=${POD_NAME}" "--zone=$ZONE" "--price=5\\$"'] == [
        line for text in texts for line in text.splitlines() if "--price" in line
    ]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "text", [f"set -e\nfalse\nexec echo $({CANARY})\n", f"exit 1\nwhile ! false; do touch x;{CANARY}; done\n"]
)
def test_the_canary_sings_where_a_value_runs(text: str, shell: str, tmp_path: Path) -> None:
    text = text.replace("while ! false; do touch x;", f"touch x;{CANARY};while ! false; do touch x;")
    assert Room(tmp_path).sings(text, shell)
    assert syntax_error("echo $(x", shell)


def _judge(cases: Sequence[tuple[Resource, Json]], room: Room) -> int:
    """Run what specs become; the number of distinct texts in which a payload is."""
    seen: set[str] = set()
    for resource, spec in cases:
        for text in _texts(resource, spec):
            if text in seen:
                continue
            seen.add(text)
            for shell in SHELLS:
                assert not syntax_error(text, shell), text
                assert CANARY not in text or not room.sings(text, shell), text
    return sum(CANARY in text for text in seen)


def _cases() -> Iterator[tuple[Resource, Json]]:
    """Every text of a rich spec of each kind, with each payload behind it and in its place."""
    for resource in KINDS:
        for generation in _GENERATIONS if resource == TIDB_CLUSTERS else ({},):
            for path in _strings(rich_spec(resource)):
                for payload in _PAYLOADS:
                    yield resource, _with(rich_spec(resource) | generation, path, payload)


def _strings(tree: object, path: Path_ = ()) -> Iterator[Path_]:
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        if isinstance(value, str):
            yield (*path, key)
        yield from _strings(value, (*path, key))


def _with(spec: Json, path: Path_, payload: str) -> Json:
    holder: Any = spec
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] += payload
    return spec


def _texts(resource: Resource, spec: Json) -> set[str]:
    """What a shell reads of the objects that become of a spec; nothing where it is refused."""
    model = _MODELS.get(resource)
    if model is None:
        return set(shell_texts(_world().objects_of(resource, spec, _WORKLOADS)))
    try:
        cluster: TidbCluster | DMCluster = with_defaults(
            decode({"metadata": {"name": "m", "namespace": "ns"}, "spec": spec}, model)
        )
        if validate(cluster):
            return set()
        return set(shell_texts(list(desired_objects(cluster, "discovery:1"))))
    except InvalidField:
        return set()


@cache
def _world() -> MutantWorld:
    return MutantWorld(1)
