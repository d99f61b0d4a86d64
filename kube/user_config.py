"""The configuration of a process or of a user at a terminal, found as kubectl finds it.

In this order: --kubeconfig; the files of $KUBECONFIG, merged, earlier files first; for a user, ~/.kube/config; the
service account of the pod.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from kube.config import ClusterConfig, ConfigError, config_of, load_in_cluster, load_kubeconfig, read_kubeconfig
from kube.home import expanded
from kube.objects import Json
from ports.clock import Clock

_LISTS = ("clusters", "users", "contexts")
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""The fields of clusters and users that are paths."""

_WAY_OUT = "name one with --kubeconfig or KUBECONFIG"


def load(kubeconfig: str, environ: Mapping[str, str], clock: Clock) -> ClusterConfig:
    """The configuration of a process, which ignores ~/.kube/config.

    Raises ConfigError.
    """
    if kubeconfig or environ.get("KUBECONFIG"):
        return load_for_user(kubeconfig, "", environ, clock)
    return load_in_cluster(environ, clock)


def load_for_user(kubeconfig: str, context: str, environ: Mapping[str, str], clock: Clock) -> ClusterConfig:
    """The configuration of the given or the current context. Raises ConfigError."""
    paths = _paths(kubeconfig, environ)
    if not paths:
        if "KUBERNETES_SERVICE_HOST" in environ and not context:
            return load_in_cluster(environ, clock)
        raise ConfigError(
            "kubeconfig", "there is none; name one with --kubeconfig or KUBECONFIG, or put it to ~/.kube/config"
        )
    if len(paths) == 1:
        return load_kubeconfig(paths[0], clock, context)
    files = _existing(paths)
    return config_of(_merged(files), files[0], os.pathsep.join(paths), clock, context)


def context_names(kubeconfig: str, environ: Mapping[str, str]) -> list[str]:
    """The names of all contexts. Raises ConfigError."""
    tree = _merged(_existing(_paths(kubeconfig, environ)))
    return sorted(str(each["name"]) for each in _named(tree, "contexts"))


def _paths(kubeconfig: str, environ: Mapping[str, str]) -> list[str]:
    if kubeconfig:
        return [kubeconfig]
    if listed := [each for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]:
        return listed
    home = expanded(environ.get("HOME", "~")) / ".kube" / "config"
    return [str(home)] if home.is_file() else []


def _existing(paths: Sequence[str]) -> list[Path]:
    files = [path for each in paths if (path := expanded(each)).exists()]
    if not files:
        raise ConfigError(
            os.pathsep.join(paths) or "kubeconfig", "no such file; name one with --kubeconfig or KUBECONFIG"
        )
    return files


def _merged(files: Sequence[Path]) -> Json:
    """One kubeconfig from several: for each value, and each name of an entry, the first file wins."""
    merged: Json = {each: [] for each in _LISTS}
    for file in files:
        tree = read_kubeconfig(file)
        for key, value in tree.items():
            if key not in _LISTS and value:
                merged.setdefault(key, value)
        for kind in _LISTS:
            known = {each["name"] for each in merged[kind]}
            merged[kind] += [_from(file, each) for each in _named(tree, kind) if each["name"] not in known]
    return merged


def _named(tree: Json, kind: str) -> list[Json]:
    entries = tree.get(kind)
    if not isinstance(entries, list):
        return []
    # anything else is not an entry
    return [
        entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry["name"]
    ]


def _from(file: Path, entry: Json) -> Json:
    """An entry with its paths resolved from the directory of its file."""
    at = file.absolute().parent
    return {name: _absolute(at, value) if isinstance(value, dict) else value for name, value in entry.items()}


def _absolute(at: Path, fields: Json) -> Json:
    made = dict(fields)
    for field in _FILES:
        if isinstance(path := made.get(field), str) and path:
            made[field] = str(at / expanded(path))
    if isinstance(program := made.get("exec"), dict) and "/" in str(program.get("command", "")):
        made["exec"] = program | {"command": str(at / expanded(program["command"]))}
    return made
