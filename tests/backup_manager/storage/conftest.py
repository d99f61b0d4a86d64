"""A server of each protocol, started once per worker; each test gets its own bucket."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from backup_manager.storage.location import Location
from backup_manager.storage.objects import Storage, open_storage
from tests.backup_manager.storage.servers import S3, Server, missing, running

Start = Callable[[str], Server]

_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """A bucket in a server."""

    server: Server
    location: Location

    def storage(self, **options: bool) -> Storage:
        return open_storage(self.location, self.server.environ, **options)

    def put(self, key: str, content: bytes = b"") -> None:
        """Write an object below the prefix."""
        self.server.put(self.bucket, f"{self.location.prefix}/{key}", content)

    @property
    def bucket(self) -> str:
        return self.location.bucket.rpartition("/")[2]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts the server of a protocol, once; skips with the reason if it is not installed."""
    with contextlib.ExitStack() as stack:
        started: dict[str, Server] = {}

        def start(name: str) -> Server:
            if reason := missing(name):
                pytest.skip(reason)
            if name not in started:
                started[name] = stack.enter_context(running(name, tmp_path_factory.mktemp(name)))
            return started[name]

        yield start


@pytest.fixture(params=["s3", "azure", "gcs", "local"])
def server(request: pytest.FixtureRequest, servers: Start) -> Server:
    return servers(request.param)


@pytest.fixture
def place(server: Server) -> Place:
    return Place(server, server.make_bucket(f"bucket-{next(_numbers)}"))


@pytest.fixture
def s3(servers: Start) -> S3:
    found = servers("s3")
    assert isinstance(found, S3)
    return found


@pytest.fixture
def s3_place(s3: S3) -> Place:
    return Place(s3, s3.make_bucket(f"bucket-{next(_numbers)}"))
