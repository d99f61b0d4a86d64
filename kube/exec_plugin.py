"""Credentials from a command, by the exec protocol of client.authentication.k8s.io.

The `kubernetes` package is not used for this: a command that hangs would hang its caller forever, and the errors for
malformed answers would quote them.
"""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from kube.objects import Json
from ports.structs import UNREADABLE, decoder

_PATIENCE = 30.0
"""Seconds that a non-interactive command may take."""

_PATIENCE_WITH_PEOPLE = 300.0
"""Seconds that a user at a terminal has to log in."""

_LONGEST_COMPLAINT = 300

_CONFIG_OF_CLUSTER = "client.authentication.k8s.io/exec"
"""The extension of a kubeconfig's cluster that is meant for plugins."""


class PluginFailed(Exception):
    """Raised when a command gives no credential; the message quotes nothing of its stdout."""


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class Plugin(msgspec.Struct, rename="camel"):
    """The `exec` section of a user in a kubeconfig."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[_Variable, ...] = ()
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class Credential(msgspec.Struct, frozen=True, rename="camel"):
    """The output of a command: a token, a client certificate with its key as PEM, or both."""

    token: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None

    @property
    def pair(self) -> tuple[bytes, bytes] | None:
        """Certificate and key, if both are present."""
        certificate, key = self.client_certificate_data, self.client_key_data
        return (certificate.encode(), key.encode()) if certificate and key else None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: Credential


def asks_people(plugin: Plugin) -> bool:
    """True if the command may prompt the user at the terminal."""
    return plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()


def ask(plugin: Plugin, cluster: Json, directory: Path, patience: float = _PATIENCE) -> Credential:
    """Run the command in `directory` and parse its output; `cluster` is from the kubeconfig. Raises PluginFailed.

    `patience` is the timeout of non-interactive commands in seconds.
    """
    interactive = asks_people(plugin)
    patience = _PATIENCE_WITH_PEOPLE if interactive else patience
    environ = {**os.environ, **{variable.name: variable.value for variable in plugin.env}}
    environ["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(_question(plugin, cluster, interactive)).decode()
    try:
        done = subprocess.run(  # noqa: S603 - what the kubeconfig names
            [plugin.command, *plugin.args],
            cwd=directory,
            env=environ,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PluginFailed(f"no answer within {patience:g} s") from None
    except (OSError, ValueError) as error:
        raise PluginFailed(getattr(error, "strerror", None) or str(error)) from error
    if done.returncode != 0:
        complaint = (done.stderr or b"").decode("utf-8", "replace").strip()[-_LONGEST_COMPLAINT:]
        raise PluginFailed(": ".join(filter(None, (f"exit code {done.returncode}", complaint))))
    return _credential(done.stdout, plugin)


def _question(plugin: Plugin, cluster: Json, interactive: bool) -> Json:
    spec: Json = {"interactive": interactive}
    if plugin.provide_cluster_info:
        extensions = {each.get("name"): each.get("extension") for each in cluster.get("extensions") or ()}
        spec["cluster"] = {key: value for key, value in cluster.items() if key != "extensions"}
        if _CONFIG_OF_CLUSTER in extensions:
            spec["cluster"]["config"] = extensions[_CONFIG_OF_CLUSTER]
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def _credential(printed: bytes, plugin: Plugin) -> Credential:
    try:
        answer = decoder(_Answer).decode(printed)
    except msgspec.ValidationError as error:
        raise PluginFailed(f"its answer is no ExecCredential: {error}") from None
    except UNREADABLE:
        raise PluginFailed("its answer is not JSON") from None
    if answer.api_version != plugin.api_version:
        raise PluginFailed(f"it answered in {answer.api_version} instead of {plugin.api_version}")
    if not answer.status.token and answer.status.pair is None:
        raise PluginFailed("it printed neither a token nor a client certificate")
    return answer.status
