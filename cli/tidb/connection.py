"""The connection of a command: API server, user and namespace."""

from argparse import Namespace
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
"""Seconds for a request: a user waits."""


class Server(Protocol):
    """The API server of a command."""

    @property
    def config(self) -> ClusterConfig:
        """Its address and the credentials. Raises Failure."""

    @property
    def namespace(self) -> str:
        """The default namespace. Raises Failure."""

    @property
    def client(self) -> Client:
        """A client of it. Raises Failure."""

    @property
    def contexts(self) -> list[str]:
        """The names of the configured contexts. Raises Failure."""


def connection_flags(given: Namespace) -> list[str]:
    """The flags with which another program finds the same API server."""
    flags = {"--kubeconfig": given.kubeconfig, "--context": given.context}
    return [f"{flag}={value}" for flag, value in flags.items() if value]


class Kubeconfig:
    """The server in a user's kubeconfig. Read and dialled on first use."""

    def __init__(
        self, path: str, context: str, environ: Mapping[str, str], clock: Clock, timeout: float = _TIMEOUT
    ) -> None:
        """`path` and `context` may be empty: see `kube.user_config`. `timeout` is the seconds for a request."""
        self._path = path
        self._context = context
        self._environ = environ
        self._clock = clock
        self._timeout = timeout

    @cached_property
    def config(self) -> ClusterConfig:
        try:
            return load_for_user(self._path, self._context, self._environ, self._clock)
        except ConfigError as error:
            raise Failure(str(error)) from None

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        return self.config.namespace

    @property
    def client(self) -> Client:
        return self._connection.client

    @property
    def contexts(self) -> list[str]:
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
        """Close the connection, if open."""
        if "_connection" in self.__dict__:
            self._connection.transport.close()
