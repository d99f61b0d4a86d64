"""The identity towards the API server: the value of the Authorization header, renewed before it expires.

Secrets stay inside: neither `repr` nor an error message contains one.
"""

import base64
import importlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from kube.exec_plugin import Credential, Plugin, PluginFailed, ask, asks_people
from kube.objects import Json
from ports.clock import Clock
from ports.lazy_log import get_logger

_log = get_logger(__name__)

_TOKEN_FILE_AGE = 50.0
"""Seconds after which a token file is read again (REST-11)."""

_TOKEN = re.compile(r"[!-~]+")

_LONGEST_LEEWAY = timedelta(minutes=1)
"""How long before its expiry a plugin's credential is renewed; a tenth of its lifetime if that is shorter."""

_AFTER_FAILURE = 10.0
"""Seconds after which a failed plugin runs again."""

Headers = tuple[tuple[str, str], ...]
"""Names and values of headers; a name may repeat."""
_ESCAPED = re.compile(r"[^!#$&'*+.^_`|~0-9A-Za-z-]")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class ConfigError(Exception):
    """Raised when the configuration of a cluster is missing or wrong: names the file, the field and the way out."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem


def bearer(token: str, source: str) -> str:
    """The header for a token, stripped of white space. Raises ConfigError if a header cannot contain it."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        # the HTTP library's own error would quote the token
        raise ConfigError(source, "the token holds characters that no token has, such as blanks")
    return f"Bearer {token}"


class Credentials(Protocol):
    """The identity that requests carry. Thread-safe."""

    def authorization(self) -> str | None:
        """The value of the Authorization header, or None for no header. Raises ConfigError if no credential is
        available.
        """

    def rejected(self, started: float) -> None:
        """Drop credentials from before `started` (monotonic seconds), when a request was sent that got a
        401 (REST-11).
        """


class NoCredentials:
    """No header: the identity, if any, is the TLS certificate."""

    def authorization(self) -> str | None:
        return None

    def rejected(self, started: float) -> None: ...


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
        return self._header

    def rejected(self, started: float) -> None: ...


class TokenFile:
    """A bearer token in a file that another program renews, e.g. a service account's (REST-11)."""

    def __init__(self, path: Path, clock: Clock, until_read: StaticCredentials | None = None) -> None:
        """`until_read` is the token to use as long as the file could not be read."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._header = until_read.authorization() if until_read else ""
        self._read_at = float("-inf")
        self._fresh = False

    def authorization(self) -> str | None:
        """The token; the file is read again after 50 s, and if that fails the old token stays.

        Raises ConfigError if no token was ever read.
        """
        with self._lock:
            now = self._clock.now()
            if not self._fresh or now - self._read_at > _TOKEN_FILE_AGE:
                self._read(now)
            return self._header

    def rejected(self, started: float) -> None:
        """Read the file before the next request, unless it has been read since `started`."""
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

    The command runs when a credential is first needed, shortly before it expires, and after a 401. While a valid
    credential exists, requests do not wait for the command, and its failure does not matter.
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
        """Why the last run gave no credential."""
        self._asked_at = float("-inf")
        self._renewing = False

    def authorization(self) -> str | None:
        """The token, or None if the command prints a client certificate instead. Raises ConfigError."""
        token = self._current().token
        return bearer(token, self._source) if token else None

    def certificate(self) -> tuple[bytes, bytes] | None:
        """The client certificate and key as PEM, if the command prints them. Raises ConfigError."""
        return self._current().pair

    def rejected(self, started: float) -> None:
        """Run the command before the next request, unless it has run since `started`."""
        with self._lock:
            if self._asked_at < started:
                self._credential = None

    def _current(self) -> Credential:
        came = self._clock.now()
        if good := self._good():
            return good
        with self._asking:
            # callers that waited for this run share its result; running it for each of them would take ages
            if good := self._good():
                return good
            if not self._has_just_failed(came):
                self._ask()
            with self._lock:
                if self._credential is None or (self._problem and self._ends_within(timedelta(0))):
                    raise ConfigError(self._source, self._problem)
                return self._credential

    def _good(self) -> Credential | None:
        """The credential unless it has expired; one that expires soon is renewed in the background."""
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
        # imported here: the package takes a quarter of a second to import, and few configurations need it
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
        """The provider's current header. Raises ConfigError if it has none."""
        with self._lock:
            try:
                header: str | None = self._configuration.get_api_key_with_prefix("BearerToken")
            except Exception as error:
                raise _failed(self._source, error) from None
        if not header:
            raise ConfigError(self._source, "the auth provider gave no token: log in again, or use an exec plugin")
        return bearer(header.removeprefix("Bearer "), self._source)

    def rejected(self, started: float) -> None:
        """Do nothing: the provider renews only by expiry."""


def _failed(source: str, error: Exception) -> ConfigError:
    """The error for an unexpected exception of the package, whose text may quote secrets."""
    return ConfigError(source, f"the auth provider failed: {type(error).__name__}; use an exec plugin")


def _cause(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The identity that a kubeconfig's user acts as: `as`, `as-uid`, `as-groups`, `as-user-extra`.

    Without these fields, the operator acts as itself. The API server checks that the operator's own identity may
    impersonate, then authorises and records each request as the other identity's.
    """

    user: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self, source: str) -> Headers:
        """The headers of each request. Raises ConfigError, which names `source`."""
        if not self.user and (self.uid or self.groups or self.extra):
            raise ConfigError(source, "as-uid, as-groups and as-user-extra need `as`, the user that they belong to")
        headers = tuple((name, _sent(value)) for name, value in self._described() if value)
        if any(_UNSENDABLE.search(value) for _, value in headers):
            raise ConfigError(source, "as, as-uid, as-groups or as-user-extra holds characters that no header has")
        return headers

    def _described(self) -> Iterator[tuple[str, str]]:
        yield "Impersonate-User", self.user
        yield "Impersonate-Uid", self.uid
        for group in self.groups:
            yield "Impersonate-Group", group
        for key, values in self.extra.items():
            for value in values:
                yield f"Impersonate-Extra-{_escaped(key)}", value


def _escaped(key: str) -> str:
    """A key as part of a header name: other characters are percent-encoded, as in client-go."""
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace")), key)


def _sent(value: str) -> str:
    """UTF-8 bytes in the form of Latin-1 text, because the HTTP library encodes headers as Latin-1."""
    return value.encode(errors="replace").decode("latin-1")
