"""Who we are to the API server: the value of the Authorization header, renewed where it expires.

Secrets stay inside: neither `repr` nor an error message carries one.
"""

import base64
import importlib
import re
import threading
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import structlog

from kube.exec_plugin import Credential, Plugin, PluginFailed, ask, asks_people
from kube.objects import Json
from ports.clock import Clock

_log = structlog.get_logger(__name__)

_TOKEN_FILE_AGE = 50.0
"""Seconds a token read from a file is used before the file is read again (REST-11)."""

_TOKEN = re.compile(r"[!-~]+")

_LONGEST_LEEWAY = timedelta(minutes=1)
"""How long before its end a plugin's credential is asked for again; a tenth of its life, if that is shorter."""

_AFTER_FAILURE = 10.0
"""Seconds after which a plugin that failed is asked again."""


class ConfigError(Exception):
    """Raised when the way to the cluster is not configured, or wrongly: names the file, the field and the way out."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem


def bearer(token: str, source: str) -> str:
    """The header of a token, without the blanks around it. Raises ConfigError for what no header can carry."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        # who sends it would quote it in an error
        raise ConfigError(source, "the token holds characters that no token has, such as blanks")
    return f"Bearer {token}"


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
    def token(cls, token: str, source: str = "token") -> "StaticCredentials":
        """A bearer token. Raises ConfigError, which names `source`."""
        return cls(bearer(token, source))

    @classmethod
    def password(cls, username: str, password: str) -> "StaticCredentials":
        """Basic authentication."""
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    def authorization(self) -> str:
        """The header."""
        return self._header

    def rejected(self, started: float) -> None:
        """Nothing to renew."""


class TokenFile:
    """A bearer token in a file that somebody else renews, such as a service account's (REST-11)."""

    def __init__(self, path: Path, clock: Clock, until_read: StaticCredentials | None = None) -> None:
        """`until_read` is used as long as the file could not be read."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._header = until_read.authorization() if until_read else ""
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
            return self._header

    def rejected(self, started: float) -> None:
        """Read the file at the next request, unless that has happened since `started`."""
        with self._lock:
            if self._read_at < started:
                self._fresh = False

    def _read(self, now: float) -> None:
        try:
            self._header = bearer(self._content(), str(self._path))
        except ConfigError as error:
            if not self._header:
                raise
            _log.warning("keeping the old token", file=str(self._path), problem=error.problem)
        self._read_at, self._fresh = now, True

    def _content(self) -> str:
        try:
            token = self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(self._path), f"cannot read the token file: {_cause(error)}") from None
        if not token.strip():
            raise ConfigError(str(self._path), "the token file is empty")
        return token


class ExecCredentials:
    """A credential that a command prints (`kube.exec_plugin`).

    The command runs when a credential is first needed, shortly before it expires, and after a 401. Nobody waits for it
    while there is one that has not expired, which also outlives a command that fails.
    """

    def __init__(self, source: str, plugin: Plugin, cluster: Json, directory: Path, clock: Clock) -> None:
        self._source = source
        self._plugin = plugin
        self._cluster = cluster
        self._directory = directory
        self._clock = clock
        self._asking = threading.Lock()
        """Held while the command runs."""
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._leeway = timedelta(0)
        self._problem = ""
        """Why the command gave no credential when it was asked last."""
        self._asked_at = float("-inf")
        self._renewing = False

    def authorization(self) -> str | None:
        """The token, or None when the command gives a client certificate instead. Raises ConfigError."""
        token = self._current().token
        return bearer(token, self._source) if token else None

    def certificate(self) -> tuple[bytes, bytes] | None:
        """The client certificate and key in PEM form, when the command gives them. Raises ConfigError."""
        return self._current().pair

    def rejected(self, started: float) -> None:
        """Run the command at the next request, unless that has happened since `started`."""
        with self._lock:
            if self._asked_at < started:
                self._credential = None

    def _current(self) -> Credential:
        came = self._clock.now()
        if good := self._good():
            return good
        with self._asking:
            # those who came while it ran share what it gave: one after another, they would wait for ages
            if good := self._good():
                return good
            if not self._has_just_failed(came):
                self._ask()
            with self._lock:
                if self._credential is None or (self._problem and self._ends_within(timedelta(0))):
                    raise ConfigError(self._source, self._problem)
                return self._credential

    def _good(self) -> Credential | None:
        """The credential, unless it has expired; one that soon will is renewed meanwhile."""
        with self._lock:
            if self._credential is None or self._ends_within(timedelta(0)):
                return None
            soon = self._ends_within(self._leeway) and not self._has_just_failed(self._clock.now())
            if soon and not self._renewing and not asks_people(self._plugin):
                self._renewing = True
                threading.Thread(target=self._renew, name="credential-plugin").start()
            return self._credential

    def _renew(self) -> None:
        try:
            with self._asking:
                self._ask()
        finally:
            self._renewing = False

    def _ends_within(self, leeway: timedelta) -> bool:
        expiry = self._credential.expiration_timestamp if self._credential else None
        return expiry is not None and expiry <= self._clock.wall() + leeway

    def _has_just_failed(self, now: float) -> bool:
        return bool(self._problem) and now - self._asked_at <= _AFTER_FAILURE

    def _ask(self) -> None:
        try:
            given, problem = ask(self._plugin, self._cluster, self._directory), ""
        except PluginFailed as error:
            given, problem = None, f"the credential plugin failed: {error}"
        with self._lock:
            self._problem, self._asked_at = problem, self._clock.now()
            if given:
                self._credential, self._leeway = given, self._leeway_of(given)
            elif self._credential and not self._ends_within(timedelta(0)):
                _log.warning("keeping the old credential", source=self._source, problem=problem)
            else:
                self._credential = None

    def _leeway_of(self, given: Credential) -> timedelta:
        expiry = given.expiration_timestamp
        return min(_LONGEST_LEEWAY, (expiry - self._clock.wall()) / 10) if expiry else timedelta(0)


class ProviderCredentials:
    """The legacy `auth-provider` of a kubeconfig (gcp, oidc), which the kubernetes package renews."""

    def __init__(self, source: str, kubeconfig: Json, context: str, directory: Path) -> None:
        # imported here: the package costs a quarter of a second and few configurations need it
        try:
            config = importlib.import_module("kubernetes.config.kube_config")
        except ImportError as error:
            way_out = "use an exec plugin, or install the package"
            raise ConfigError(source, f"auth-provider needs the Python package kubernetes; {way_out}") from error
        self._source = source
        self._lock = threading.Lock()
        self._configuration = config.Configuration()
        try:
            loader = config.KubeConfigLoader(kubeconfig, active_context=context, config_base_path=str(directory))
            loader.load_and_set(self._configuration)
        except config.ConfigException as error:
            raise ConfigError(source, f"the auth provider failed: {error}") from error
        except Exception as error:
            raise _failed(source, error) from None

    def authorization(self) -> str | None:
        """The provider's current header. Raises ConfigError when it gives none."""
        with self._lock:
            try:
                header: str | None = self._configuration.get_api_key_with_prefix("BearerToken")
            except Exception as error:
                raise _failed(self._source, error) from None
        if not header:
            raise ConfigError(self._source, "the auth provider gave no token: log in again, or use an exec plugin")
        return bearer(header.removeprefix("Bearer "), self._source)

    def rejected(self, started: float) -> None:
        """The provider renews by expiry only."""


def _failed(source: str, error: Exception) -> ConfigError:
    """For what the package did not expect: its words may quote anything."""
    return ConfigError(source, f"the auth provider failed: {type(error).__name__}; use an exec plugin")


def _cause(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
