"""The connection of a command: which API server, as whom, in which namespace."""

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from cli.failures import Failure
from kube.client import Client
from kube.config import ClusterConfig, ConfigError
from kube.connecting import Connection, connect_directly
from kube.user_config import context_names, load_for_user
from ports.clock import Clock

USER_AGENT = "kubectl-tidb"

_TIMEOUT = 20.0
"""Seconds for a request: somebody waits."""


class Server(Protocol):
    """What commands know of the API server."""

    @property
    def config(self) -> ClusterConfig:
        """Where it is, and who we are. Raises Failure."""

    @property
    def namespace(self) -> str:
        """Where to look unless told otherwise. Raises Failure."""

    @property
    def client(self) -> Client:
        """Its API. Raises Failure."""

    @property
    def contexts(self) -> list[str]:
        """The names of the servers, and of who we are there, that are configured. Raises Failure."""


class Kubeconfig:
    """The server that a user has configured. Nothing is read or dialled before it is asked for."""

    def __init__(
        self, path: str, context: str, environ: Mapping[str, str], clock: Clock, timeout: float = _TIMEOUT
    ) -> None:
        """`path` and `context` may be empty: see `kube.user_config`. `timeout` is in seconds, for a request."""
        self._path = path
        self._context = context
        self._environ = environ
        self._clock = clock
        self._timeout = timeout

    @cached_property
    def config(self) -> ClusterConfig:
        """See `Server`."""
        try:
            return load_for_user(self._path, self._context, self._environ, self._clock)
        except ConfigError as error:
            raise Failure(str(error)) from None

    @property
    def namespace(self) -> str:
        """See `Server`: that of the context."""
        return self.config.namespace

    @property
    def client(self) -> Client:
        """See `Server`."""
        return self._connection.client

    @property
    def contexts(self) -> list[str]:
        """See `Server`."""
        try:
            return context_names(self._path, self._environ)
        except ConfigError as error:
            raise Failure(str(error)) from None

    @cached_property
    def _connection(self) -> Connection:
        try:
            return connect_directly(
                self.config, self._environ, self._clock, timeout=self._timeout, user_agent=USER_AGENT
            )
        except ConfigError as error:
            raise Failure(str(error)) from None

    def close(self) -> None:
        """End the connection, if there is one."""
        if "_connection" in self.__dict__:
            self._connection.transport.close()
