"""The cluster configuration of a user at a terminal."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.config import ConfigError
from kube.user_config import context_names, load, load_for_user
from ports.clock import FakeClock

CLOCK = FakeClock()


def kubeconfig(path: Path, *contexts: str, current: str = "", user: Any = None) -> str:
    """A file with a cluster, a user and a context of each name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = {
        "clusters": [{"name": each, "cluster": {"server": f"https://{each}.{path.stem}"}} for each in contexts],
        "users": [{"name": each, "user": user or {}} for each in contexts],
        "contexts": [
            {"name": each, "context": {"cluster": each, "user": each, "namespace": f"of-{each}"}} for each in contexts
        ],
        "current-context": current,
    }
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return str(path)


def test_the_order_is_flag_environment_home_directory(tmp_path: Path) -> None:
    home = kubeconfig(tmp_path / ".kube" / "config", "home", current="home")
    environ, flag = (kubeconfig(tmp_path / each, each, current=each) for each in ("environ", "flag"))
    given = {"HOME": str(tmp_path), "KUBECONFIG": environ}
    assert flag == load_for_user(flag, "", given, CLOCK).source
    assert environ == load_for_user("", "", given, CLOCK).source
    assert home == load_for_user("", "", {"HOME": str(tmp_path)}, CLOCK).source


def test_an_error_about_a_missing_context_lists_the_existing_ones(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "1", "east", "west", current="east")
    assert "of-west" == load_for_user(path, "west", {}, CLOCK).namespace
    with pytest.raises(ConfigError, match="contexts has no entry named 'north'; it has: east, west"):
        load_for_user(path, "north", {}, CLOCK)


def test_merges_several_files_and_skips_missing_ones(tmp_path: Path) -> None:
    one = kubeconfig(tmp_path / "1", "east", current="west")
    two = kubeconfig(tmp_path / "2", "east", "west", current="east")
    environ = {"KUBECONFIG": os.pathsep.join((one, str(tmp_path / "none"), two))}
    assert "https://west.2" == load_for_user("", "", environ, CLOCK).server
    assert "https://west.2" == load("", environ, CLOCK).server
    assert "https://east.1" == load_for_user("", "east", environ, CLOCK).server
    assert ["east", "west"] == context_names("", environ)


def test_a_process_does_not_read_the_home_directory(tmp_path: Path) -> None:
    home = kubeconfig(tmp_path / ".kube" / "config", "home", current="home")
    with pytest.raises(ConfigError, match="this process does not run in a pod"):
        load("", {"HOME": str(tmp_path)}, CLOCK)
    assert home == load(home, {}, CLOCK).source


def test_paths_start_at_the_directory_of_their_file(tmp_path: Path) -> None:
    one = kubeconfig(tmp_path / "1", "east", current="west")
    two = kubeconfig(tmp_path / "deep" / "2", "west", user={"client-certificate": "c", "client-key": "k"})
    for name in ("c", "k"):
        (tmp_path / "deep" / name).write_text(name)
    tls = load_for_user("", "", {"KUBECONFIG": os.pathsep.join((one, two))}, CLOCK).tls
    assert (b"c", b"k") == (tls.certificate, tls.key)


def test_without_configuration_the_error_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name one with --kubeconfig or KUBECONFIG"):
        load_for_user("", "", {"HOME": str(tmp_path)}, CLOCK)
    with pytest.raises(ConfigError, match="no such file"):
        load_for_user("", "", {"KUBECONFIG": os.pathsep.join(("/no", "/where"))}, CLOCK)


@pytest.mark.parametrize("home", ["~nobody-of-that-name", "~nobody-of-that-name/x"])
def test_an_unknown_home_directory_counts_as_a_missing_file(tmp_path: Path, home: str) -> None:
    with pytest.raises(ConfigError, match="there is none"):
        load_for_user("", "", {"HOME": home}, CLOCK)
    for kubeconfigs in (f"{home}/config", f"{home}/config{os.pathsep}{home}/other"):
        with pytest.raises(ConfigError, match="no such file"):
            load_for_user("", "", {"KUBECONFIG": kubeconfigs}, CLOCK)
    path = kubeconfig(tmp_path / "config", "a", current="a", user={"tokenFile": f"{home}/token"})
    with pytest.raises(ConfigError, match="cannot read the token file"):
        load_for_user(path, "", {}, CLOCK).credentials.authorization()


def test_skips_entries_without_a_name_when_merging(tmp_path: Path) -> None:
    first, second = (kubeconfig(tmp_path / each, each, current=each) for each in "ab")
    tree = yaml.safe_load(Path(first).read_text(encoding="utf-8"))
    tree["users"] = [{"user": {}}, {"name": ["x"]}, "x", *tree["users"]]
    Path(first).write_text(yaml.safe_dump(tree), encoding="utf-8")
    assert "of-a" == load_for_user("", "", {"KUBECONFIG": f"{first}{os.pathsep}{second}"}, CLOCK).namespace
