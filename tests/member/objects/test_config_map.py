"""The name and text of a ConfigMap (objects.md 6.5, design.md 3.5)."""

from itertools import count

import pytest

from kube.objects import Json
from member.objects.config_map import (
    ConfigMapChoice,
    Content,
    choose_config_map,
    config_map,
    digest,
    in_use_config_map_name,
    with_options,
)
from member.pd import desired as pd
from tests.member.clusters import cluster

OPTIONS = "tidb.pingcap.com/start-script-options"


def _content(config: str = "a = 1\n", script: str = "ours", **options: object) -> Content:
    return Content({"config-file": config, "startup-script": script}, options)


def _in_use(config: str = "a = 1\n", script: str = "theirs", options: str | None = None) -> Json:
    annotations = {} if options is None else {OPTIONS: options}
    return {"metadata": {"annotations": annotations}, "data": {"config-file": config, "startup-script": script}}


def _choose(
    content: Content, in_use: Json | None, strategy: str = "RollingUpdate", name: str = "demo-pd-old"
) -> ConfigMapChoice:
    return choose_config_map("demo-pd", content, strategy, name, in_use)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"config-file": "", "startup-script": ""}, "3734366"),
        ({"startup-script": "a<b>&c", "config-file": '[log]\n  level = "info"\n'}, "3034366"),
    ],
)
@pytest.mark.rule("objects-6.5")
def test_digest_vectors(data: dict[str, str], expected: str) -> None:
    assert expected == digest(data)


@pytest.mark.parametrize(
    ("strategy", "expected"), [("InPlace", "demo-pd"), ("RollingUpdate", f"demo-pd-{digest(_content().data)}")]
)
@pytest.mark.rule("objects-6.5")
def test_the_first_name(strategy: str, expected: str) -> None:
    choice = choose_config_map("demo-pd", _content(), strategy)
    assert (expected, _content().data) == (choice.name, choice.data)


@pytest.mark.parametrize("strategy", ["InPlace", "RollingUpdate"])
@pytest.mark.parametrize(
    "content",
    [_content(), _content(config="  a   = 1"), _content(script="an operator's newer script")],
    ids=["nothing", "notation", "script"],
)
@pytest.mark.rule("3.5")
def test_an_operator_version_changes_neither_name_nor_text(strategy: str, content: Content) -> None:
    for options in (None, "{}"):
        choice = _choose(content, _in_use(options=options), strategy)
        assert ("demo-pd-old", _in_use()["data"], "{}") == (choice.name, choice.data, choice.script_options)


@pytest.mark.rule("objects-6.5")
def test_a_changed_configuration_gets_a_new_name_and_the_new_script() -> None:
    content = _content(config="a = 2\n")
    choice = _choose(content, _in_use())
    assert (f"demo-pd-{digest(content.data)}", content.data) == (choice.name, choice.data)
    assert "configuration" in choice.because


@pytest.mark.rule("objects-6.5")
def test_a_changed_script_option_gets_a_new_name_and_keeps_the_text_of_the_configuration() -> None:
    choice = _choose(_content(config="a=1", plugins=["x"]), _in_use(options="{}"))
    expected = {"config-file": "a = 1\n", "startup-script": "ours"}
    assert (f"demo-pd-{digest(expected)}", expected) == (choice.name, choice.data)
    assert '{"plugins":["x"]}' == choice.script_options
    assert "start-script options" in choice.because


@pytest.mark.rule("objects-6.5")
def test_a_config_map_without_recorded_options_has_the_options_that_its_pods_were_written_for() -> None:
    def choose(options: str | None, before: Content | None) -> ConfigMapChoice:
        return _choose(_content(names=("x",)), with_options(_in_use(options=options), lambda: before))

    for options in (None, "{"):
        assert "demo-pd-old" != choose(options, _content()).name
        assert "demo-pd-old" == choose(options, _content(names=["x"])).name == choose(options, None).name
    assert "demo-pd-old" == choose('{"names":["x"]}', _content()).name


@pytest.mark.rule("objects-6.5")
def test_an_option_that_changes_no_text_keeps_the_name() -> None:
    choice = _choose(_content(script="theirs", tls=True), _in_use(options="{}"))
    assert ("demo-pd-old", '{"tls":true}') == (choice.name, choice.script_options)


@pytest.mark.rule("objects-6.5")
def test_in_place_keeps_the_name_and_changes_the_text() -> None:
    content = _content(config="a = 2\n")
    choice = _choose(content, _in_use(), "InPlace")
    assert ("demo-pd-old", content.data) == (choice.name, choice.data)


@pytest.mark.rule("objects-6.5")
def test_a_colliding_digest_gets_a_suffix() -> None:
    in_use = _in_use()
    contents = (_content(config=f"a = {number}\n") for number in count(2))
    colliding = next(each for each in contents if digest(each.data) == digest(in_use["data"]))
    name = f"demo-pd-{digest(in_use['data'])}"
    assert f"{name}-new" == _choose(colliding, in_use, name=name).name


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"config-file": "a = 2\n", "startup-script": "ours"},
        {"config-file": "a = 1\n", "startup-script": "exit 1"},
        {"config-file": "a = 1\n"},
        {"startup-script": "ours"},
        {"config-file": "a = 1\n", "startup-script": "ours", "more": "text"},
    ],
    ids=["nothing", "configuration", "script", "no script", "no configuration", "more"],
)
@pytest.mark.rule("R27")
def test_a_foreign_edit_of_the_texts_is_undone_under_the_same_name(others: dict[str, str]) -> None:
    content = _content()
    name = f"demo-pd-{digest(content.data)}"
    choice = _choose(content, {"metadata": {}, "data": others}, name=name)
    assert (name, content.data) == (choice.name, choice.data)


@pytest.mark.rule("R27")
def test_a_script_of_another_version_is_put_back_with_its_configuration() -> None:
    in_use = _in_use()
    name = f"demo-pd-{digest(in_use['data'])}"
    changed = {"metadata": {}, "data": {**in_use["data"], "config-file": "a = 2\n"}}
    choice = _choose(_content(), changed, name=name)
    assert (name, in_use["data"]) == (choice.name, choice.data)


@pytest.mark.parametrize("old", ["a = 1.0\n", "a = true\n", "a = \n", "b = 1\n"])
@pytest.mark.rule("objects-6.5")
def test_a_difference_in_toml_is_a_change(old: str) -> None:
    assert "demo-pd-old" != _choose(_content(), _in_use(config=old)).name


@pytest.mark.parametrize("strategy", ["RollingUpdate", "InPlace"])
@pytest.mark.rule("objects-6.5")
def test_a_lost_config_map_is_recreated_under_its_name(strategy: str) -> None:
    assert "demo-pd-old" == _choose(_content(), None, strategy).name


@pytest.mark.rule("objects-6.5")
def test_a_config_map_that_lost_a_key_is_changed() -> None:
    for key in ("config-file", "startup-script"):
        damaged = _in_use()
        del damaged["data"][key]
        assert "demo-pd-old" != _choose(_content(), damaged).name


@pytest.mark.rule("objects-6.5")
def test_the_name_in_use_is_the_first_that_bears_the_components_name() -> None:
    tc = cluster()
    assert "" == in_use_config_map_name(tc, "pd", None)
    assert "demo-pd-1" == in_use_config_map_name(tc, "pd", pd.stateful_set(tc, "demo-pd-1"))
    assert "demo-pd" == in_use_config_map_name(tc, "pd", pd.stateful_set(tc, "demo-pd"))
    assert "" == in_use_config_map_name(tc, "pd", pd.stateful_set(tc, "demo-pdx"))


@pytest.mark.rule("objects-6.5")
def test_while_the_stateful_set_is_re_created_the_annotation_remembers() -> None:
    remembered = cluster(annotations={"tidb.pingcap.com/configmap-name-before-delete-pd": "demo-pd-7"})
    assert "demo-pd-7" == in_use_config_map_name(remembered, "pd", None)


@pytest.mark.rule("objects-6.3")
def test_the_object() -> None:
    tc = cluster()
    made = config_map(tc, "pd", choose_config_map("demo-pd", pd.content(tc), "InPlace"))
    assert ("demo-pd", {"config-file", "startup-script"}) == (made["metadata"]["name"], made["data"].keys())
    assert {OPTIONS: "{}"} == made["metadata"]["annotations"]
