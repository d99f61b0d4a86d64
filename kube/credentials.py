"""Who we are to the API server: the value of the Authorization header, renewed where it expires.

Secrets stay inside: neither `repr` nor an error message carries one.
"""

import base64
import importlib
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import structlog

from kube.objects import Json
from ports.clock import Clock

_log = structlog.get_logger(__name__)

_TOKEN_FILE_AGE = 50.0
"""Seconds a token read from a file is used before the file is read again (REST-11)."""

_EXPIRY_LEEWAY = timedelta(minutes=1)
"""How long before its end a plugin's credential is asked for again."""


class ConfigError(Exception):
    """Raised when the way to the cluster is not configured, or wrongly: names the file, the field and the way out."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem


class Credentials(Protocol):
    """The identity that requests carry. Safe for use by many threads."""

    def authorization(self) -> str | None:
        """The value of the Authorization header, or None for none. Raises ConfigError when it cannot be had."""

    def rejected(self, started: float) -> None:
        """A request sent at `started`, monotonic seconds, was answered 401: drop what is older (REST-11)."""


class NoCredentials:
    """Nothing but what TLS says."""

    def authorization(self) -> str | None:
        """None."""
        return None

    def rejected(self, started: float) -> None:
        """Nothing to drop."""


class StaticCredentials:
    """A header that never changes."""

    def __init__(self, header: str) -> None:
        self._header = header

    @classmethod
    def token(cls, token: str) -> "StaticCredentials":
        """A bearer token."""
        return cls(f"Bearer {token}")

    @classmethod
    def password(cls, username: str, password: str) -> "StaticCredentials":
        """Basic authentication."""
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    def authorization(self) -> str | None:
        """The header."""
        return self._header

    def rejected(self, started: float) -> None:
        """Nothing to renew."""


class TokenFile:
    """A bearer token in a file that somebody else renews, such as a service account's (REST-11)."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._read_at = float("-inf")
        self._fresh = False

    def authorization(self) -> str | None:
        """The token, read again when 50 s old; an old one outlives a file that cannot be read.

        Raises ConfigError when there is none.
        """
        with self._lock:
            now = self._clock.now()
            if not self._fresh or now - self._read_at > _TOKEN_FILE_AGE:
                self._read(now)
            return f"Bearer {self._token}"

    def rejected(self, started: float) -> None:
        """Read the file at the next request, unless that has happened since `started`."""
        with self._lock:
            if self._read_at < started:
                self._fresh = False

    def _read(self, now: float) -> None:
        try:
            token = self._path.read_text("utf-8").strip()
            problem = "" if token else "the token file is empty"
        except (OSError, UnicodeDecodeError) as error:
            token, problem = "", f"cannot read the token file: {_cause(error)}"
        if token:
            self._token, self._read_at, self._fresh = token, now, True
            return
        if not self._token:
            raise ConfigError(str(self._path), problem)
        _log.warning("keeping the old token", file=str(self._path), problem=problem)


class ExecCredentials:
    """A credential that a command prints, by the exec protocol of client.authentication.k8s.io.

    The command runs when a credential is first needed, when it expires, and after a 401.
    """

    def __init__(self, source: str, command: Json, cluster: Json, directory: Path, clock: Clock) -> None:
        self._source = source
        self._command = command
        self._cluster = cluster
        self._directory = directory
        self._clock = clock
        self._lock = threading.Lock()
        self._status: Mapping[str, Any] | None = None
        self._asked_at = float("-inf")

    def authorization(self) -> str | None:
        """The token, or None when the command gives a client certificate instead. Raises ConfigError."""
        with self._lock:
            token = self._current().get("token")
            return f"Bearer {token}" if token else None

    def certificate(self) -> tuple[str, str] | None:
        """The client certificate and key as PEM text, when the command gives them. Raises ConfigError."""
        with self._lock:
            status = self._current()
            certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
            return (certificate, key) if certificate and key else None

    def rejected(self, started: float) -> None:
        """Run the command at the next request, unless that has happened since `started`."""
        with self._lock:
            if self._asked_at < started:
                self._status = None

    def _current(self) -> Mapping[str, Any]:
        if self._status is None or self._has_expired(self._status):
            self._asked_at = self._clock.now()
            self._status = self._run()
        return self._status

    def _has_expired(self, status: Mapping[str, Any]) -> bool:
        expiry = status.get("expirationTimestamp")
        if not expiry:
            return False
        return datetime.fromisoformat(expiry).astimezone(UTC) - _EXPIRY_LEEWAY <= self._clock.wall()

    def _run(self) -> Mapping[str, Any]:
        # imported here: the package costs a quarter of a second and few configurations need it
        config = importlib.import_module("kubernetes.config.kube_config")
        provider = importlib.import_module("kubernetes.config.exec_provider")
        try:
            node = config.ConfigNode("exec", self._command)
            cluster = config.ConfigNode("cluster", self._cluster)
            status: Mapping[str, Any] = provider.ExecProvider(node, str(self._directory), cluster).run()
        except (config.ConfigException, OSError) as error:
            raise ConfigError(self._source, f"the credential plugin failed: {_cause(error)}") from error
        if not status.get("token") and not (status.get("clientCertificateData") and status.get("clientKeyData")):
            raise ConfigError(self._source, "the credential plugin printed neither a token nor a client certificate")
        return status


class ProviderCredentials:
    """The legacy `auth-provider` of a kubeconfig (gcp, oidc), which the kubernetes package renews."""

    def __init__(self, source: str, kubeconfig: Json, context: str, directory: Path) -> None:
        config = importlib.import_module("kubernetes.config.kube_config")
        self._source = source
        self._lock = threading.Lock()
        self._configuration = config.Configuration()
        try:
            loader = config.KubeConfigLoader(kubeconfig, active_context=context, config_base_path=str(directory))
            loader.load_and_set(self._configuration)
        except config.ConfigException as error:
            raise ConfigError(source, f"the auth provider failed: {error}") from error

    def authorization(self) -> str | None:
        """The provider's current header. Raises ConfigError when it gives none."""
        with self._lock:
            header: str | None = self._configuration.get_api_key_with_prefix("BearerToken")
        if not header:
            raise ConfigError(self._source, "the auth provider gave no token: log in again, or use an exec plugin")
        return header

    def rejected(self, started: float) -> None:
        """The provider renews by expiry only."""


def _cause(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
