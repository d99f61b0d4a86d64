"""The configuration of a cluster, from a kubeconfig or from the service account of the operator's own pod.

This module reads the file itself, so that an error names file, field and the way out. Auth providers need foreign code:
for them it imports the `kubernetes` package.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from kube.credentials import (
    ConfigError,
    Credentials,
    ExecCredentials,
    Headers,
    Impersonation,
    NoCredentials,
    ProviderCredentials,
    StaticCredentials,
    TokenFile,
)
from kube.exec_plugin import Plugin
from kube.home import expanded
from kube.objects import Json
from kube.yaml_tree import TooLarge, load_yaml
from ports.clock import Clock
from ports.proxies import PROXY_SCHEMES
from ports.structs import convert

__all__ = [
    "ClusterConfig",
    "ConfigError",
    "Tls",
    "config_of",
    "load_in_cluster",
    "load_kubeconfig",
    "read_kubeconfig",
]

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Tls:
    """The trusted authorities (empty: the system's) and the client certificate, as PEM bytes."""

    ca: bytes = b""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    server_name: str = ""
    insecure: bool = False


POD_NETWORK = "pod-network"
"""The extension of a cluster in a kubeconfig whose `proxy-url` reaches pods; kubectl ignores it."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One cluster and one identity. `source` is the origin of the configuration, for messages."""

    server: str
    source: str
    namespace: str = "default"
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=NoCredentials, repr=False)
    impersonation: Headers = ()
    """The headers that name the user to act as, if it differs from the credential."""
    proxy_url: str = field(default="", repr=False)
    pods_proxy_url: str = field(default="", repr=False)
    """The proxy that reaches Services and pods of the cluster from outside, of the extension POD_NETWORK."""
    renew: Callable[[], Tls] | None = field(default=None, repr=False, compare=False)
    """Returns the current `tls` if files or a plugin may change it. Raises ConfigError."""


def load_in_cluster(environ: Mapping[str, str], clock: Clock, directory: Path = _SERVICE_ACCOUNT) -> ClusterConfig:
    """The configuration from a pod's file system and environment. Raises ConfigError."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError(
            "in-cluster configuration",
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not run in a pod; "
            "name a kubeconfig with --kubeconfig or KUBECONFIG",
        )
    credentials = TokenFile(directory / "token", clock)
    credentials.authorization()
    namespace = directory / "namespace"
    tls = partial(_tls_of_pod, directory)
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        source="in-cluster configuration",
        namespace=namespace.read_text("utf-8").strip() if namespace.is_file() else "default",
        tls=tls(),
        credentials=credentials,
        renew=tls,
    )


def _tls_of_pod(directory: Path) -> Tls:
    return Tls(ca=_read(directory / "ca.crt", "service account", "ca.crt"))


def load_kubeconfig(path: str, clock: Clock, context: str = "") -> ClusterConfig:
    """The configuration of a context of the kubeconfig at `path`, by default its `current-context`.

    Raises ConfigError.
    """
    file = expanded(path)
    return config_of(read_kubeconfig(file), file, path, clock, context)


def config_of(tree: Json, file: Path, path: str, clock: Clock, context: str = "") -> ClusterConfig:
    """Like `load_kubeconfig`, for a parsed kubeconfig; relative paths start at the directory of `file`.

    Raises ConfigError, which names `path`.
    """
    kubeconfig = _convert(tree, _KubeConfig, path)
    wanted = context or kubeconfig.current_context
    if not wanted:
        raise ConfigError(path, "current-context is empty; set it with `kubectl config use-context <name>`")
    chosen = _named(kubeconfig.contexts, wanted, path, "contexts", _Context)
    cluster = _named(kubeconfig.clusters, chosen.cluster, path, "clusters", _Cluster)
    user = _named(kubeconfig.users, chosen.user, path, "users", _User) if chosen.user else _User()
    reader = _Reader(file, tree, wanted, clock)
    credentials = reader.credentials(user, cluster, chosen.user)
    tls = partial(reader.tls, user, cluster, chosen, credentials)
    return ClusterConfig(
        server=_server(cluster.server, path, f"clusters[{chosen.cluster}].cluster.server"),
        source=path,
        namespace=chosen.namespace or "default",
        tls=tls(),
        credentials=credentials,
        impersonation=user.impersonation().headers(f"{path}: users[{chosen.user}].user"),
        proxy_url=_proxy(cluster.proxy_url, path, f"clusters[{chosen.cluster}].cluster.proxy-url"),
        pods_proxy_url=_proxy(
            cluster.pods_proxy_url, path, f"clusters[{chosen.cluster}].cluster.extensions[{POD_NETWORK}].proxy-url"
        ),
        renew=tls,
    )


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Json] | None = None

    @property
    def pods_proxy_url(self) -> str:
        """What the extension POD_NETWORK says."""
        for each in self.extensions or ():
            extension = each.get("extension")
            if each.get("name") == POD_NETWORK and isinstance(extension, dict):
                return str(extension.get("proxy-url") or "")
        return ""


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: Plugin | None = None
    auth_provider: Json | None = None
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}

    def impersonation(self) -> Impersonation:
        """The identity that this user acts as."""
        return Impersonation(self.as_, self.as_uid, self.as_groups, self.as_user_extra)


class _Context(msgspec.Struct):
    cluster: str
    user: str = ""
    namespace: str = ""


class _KubeConfig(msgspec.Struct, rename="kebab"):
    """A kubeconfig. Only the chosen entries are decoded: other entries may be malformed."""

    clusters: list[Json] = []
    users: list[Json] = []
    contexts: list[Json] = []
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class _Reader:
    """Resolves references in a kubeconfig; relative paths start at its directory."""

    file: Path
    tree: Json
    context: str
    clock: Clock

    def tls(self, user: _User, cluster: _Cluster, context: _Context, credentials: Credentials) -> Tls:
        at_cluster, at_user = f"clusters[{context.cluster}].cluster", f"users[{context.user}].user"
        ca = self._pem(cluster.certificate_authority, cluster.certificate_authority_data, at_cluster, _CA)
        certificate = self._pem(user.client_certificate, user.client_certificate_data, at_user, "client-certificate")
        key = self._pem(user.client_key, user.client_key_data, at_user, "client-key")
        if bool(certificate) != bool(key):
            raise ConfigError(str(self.file), f"{at_user}: client-certificate and client-key go together")
        if isinstance(credentials, ExecCredentials) and (pair := credentials.certificate()):
            certificate, key = pair
        return Tls(ca, certificate, key, cluster.tls_server_name, cluster.insecure_skip_tls_verify)

    def credentials(self, user: _User, cluster: _Cluster, name: str) -> Credentials:
        source = f"{self.file}: users[{name}].user"
        if user.auth_provider is not None:
            return ProviderCredentials(f"{source}.auth-provider", self.tree, self.context, self.file.parent)
        token = StaticCredentials.token(user.token, f"{source}.token") if user.token else None
        if user.token_file:
            return TokenFile(self._path(user.token_file), self.clock, token)
        if token:
            return token
        if user.exec is not None:
            described = _without_empty(msgspec.to_builtins(cluster))
            return ExecCredentials(f"{source}.exec", user.exec, described, self.file.parent, self.clock)
        if user.username:
            return StaticCredentials.password(user.username, user.password)
        return NoCredentials()

    def _pem(self, path: str, data: str, at: str, name: str) -> bytes:
        if data:
            try:
                # the base64 may be wrapped, as tools write it and as Go accepts it
                return base64.b64decode(data.replace("\r", "").replace("\n", ""), validate=True)
            except ValueError as error:
                raise ConfigError(str(self.file), f"{at}.{name}-data is not base64") from error
        return _read(self._path(path), str(self.file), f"{at}.{name}") if path else b""

    def _path(self, path: str) -> Path:
        return self.file.parent / expanded(path)


_CA = "certificate-authority"
_MOST_BYTES = 4 << 20
"""The maximum size of a kubeconfig; one with the certificates of a hundred clusters has a megabyte."""


def read_kubeconfig(file: Path) -> Json:
    """The tree in a file. Raises ConfigError."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigError(str(file), f"not a kubeconfig: it is larger than {_MOST_BYTES >> 20} MiB")
        tree = load_yaml(content)
    except FileNotFoundError:
        raise ConfigError(str(file), "no such file; name one kubeconfig with --kubeconfig or KUBECONFIG") from None
    except OSError as error:
        raise ConfigError(str(file), f"cannot read the file: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        # the error's text quotes the file, which contains secrets
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(str(file), f"not YAML{where}: {error.problem}") from None
    except yaml.YAMLError:
        raise ConfigError(str(file), "not YAML: it holds characters that YAML does not allow") from None
    except TooLarge as error:
        raise ConfigError(str(file), f"not a kubeconfig: {error}") from None
    except (RecursionError, ValueError, LookupError, OverflowError, TypeError):
        raise ConfigError(str(file), "not a kubeconfig: it is nested too deeply, or holds values of no use") from None
    if not isinstance(tree, dict):
        raise ConfigError(str(file), "not a kubeconfig: the file holds no mapping")
    return tree


def _convert(tree: Json, model: type[_T], path: str, at: str = "") -> _T:
    try:
        # an explicit null means absent, as everywhere in Kubernetes
        return convert(_without_null(tree), model)
    except msgspec.ValidationError as error:
        raise ConfigError(path, f"{at or 'not a kubeconfig'}: {error}") from None


def _named(entries: list[Json], name: str, path: str, kind: str, model: type[_T]) -> _T:
    """The content of the first entry with a name."""
    one = kind.removesuffix("s")
    for entry in entries:
        if entry.get("name") == name:
            return _convert(entry.get(one, {}), model, path, f"{kind}[{name}].{one}")
    known = ", ".join(sorted(str(entry.get("name")) for entry in entries)) or "none"
    raise ConfigError(path, f"{kind} has no entry named {name!r}; it has: {known}")


def _server(server: str, path: str, at: str) -> str:
    parts = _split(server, path, at)
    if parts not in ("http", "https"):
        raise ConfigError(path, f"{at} must be a URL such as https://host:6443, not {server!r}")
    return server.rstrip("/")


def _proxy(url: str, path: str, at: str) -> str:
    if url and _split(url, path, at) not in PROXY_SCHEMES:
        raise ConfigError(path, f"{at}: a proxy is http://, https:// or socks5://")
    return url


def _split(url: str, path: str, at: str) -> str:
    """The scheme of a URL with a host, else an empty text."""
    try:
        parts = urlsplit(url)
        return parts.scheme if parts.hostname and parts.port != 0 else ""
    except ValueError as error:
        raise ConfigError(path, f"{at}: {error}") from None


def _read(file: Path, source: str, at: str) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(source, f"{at}: cannot read {file}: {error.strerror}") from error
    if not content.strip():
        # OpenSSL would fall back to the system's authorities
        raise ConfigError(source, f"{at}: {file} is empty")
    return content


def _without_null(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_null(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_null(value) for value in tree]
    return tree


def _without_empty(tree: Json) -> Json:
    return {key: value for key, value in tree.items() if value}
