"""No value of a spec runs in a shell, whatever is in it, and none breaks a script."""

from pathlib import Path

import pytest

from kube.objects import Json
from kube.resources import TIDB_CLUSTERS, TIDB_MONITORS
from member.startscript.fragments import expanding_words, quoted
from simulate.manifests.rich_specs import rich_spec
from tests.security.parsed_objects import substituted
from tests.security.shell_texts import CANARY, SHELLS, Room, shell_texts, syntax_error
from tests.security.spec_objects import objects_of


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
    texts = _texts(patch, component)
    assert any(CANARY in text for text in texts)
    room = Room(tmp_path)
    assert [] == [text for text in texts if CANARY in text and room.sings(text, shell)]
    assert [] == [text for text in texts if syntax_error(text, shell)]


def test_arguments_of_tidb_still_refer_to_the_environment() -> None:
    patch = {"arguments": ["--name=${POD_NAME} --zone=$ZONE", "--price=5$"]}
    texts = [text for text in _texts(patch, "tidb") if "--price" in text]
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


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("value", ["$(COLOR)", "$$", "$$(COLOR)", "'$(COLOR)'", '"$$COLOR"', "a$", "\\$(COLOR)"])
def test_the_kubelet_changes_no_value_in_a_script(value: str, shell: str, tmp_path: Path) -> None:
    words = [quoted(value), *expanding_words(value.replace("$COLOR", "$ COLOR"))]
    script = substituted(f"touch {' '.join(words)}", {"COLOR": "'; pwned; '"})
    expected = ["touch", value, *value.replace("$COLOR", "$ COLOR").split()]
    assert [expected] == Room(tmp_path).run(script, shell).calls


def test_options_of_prometheus_still_refer_to_its_pod() -> None:
    spec = rich_spec(TIDB_MONITORS)
    spec["prometheus"]["config"]["commandOptions"] = ["--web.page-title=$(POD_NAME)/$(SHARD)/$(OTHER)"]
    (text,) = (text for text in shell_texts([*objects_of(TIDB_MONITORS, spec).values()]) if "page-title" in text)
    assert '"--web.page-title=${POD_NAME}/${SHARD}/\\$""(OTHER)"' in text


def _texts(patch: Json, component: str) -> set[str]:
    """The texts that shells read of a cluster with every component, one of which is changed."""
    spec = rich_spec(TIDB_CLUSTERS)
    spec[component] |= patch
    return set(shell_texts([*objects_of(TIDB_CLUSTERS, spec).values()]))
