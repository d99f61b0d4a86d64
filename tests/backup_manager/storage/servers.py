"""Servers of object storage on loopback: moto (S3), Azurite (Azure), fake-gcs-server (GCS); and their buckets.

Invented secrets contain CANARY, which must never appear in a message.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import boto3
import urllib3

from backup_manager.storage.location import Kind, Location
from tests.backup_manager.storage import gcs_front
from tests.controlplane.processes import free_port

STORAGES = Path(__file__).parents[3] / "hack" / "storages"
CANARY = "canary7Qx"

_PATIENCE = 30.0


class Server(Protocol):
    """A service in which each test gets its own bucket."""

    environ: dict[str, str]

    def make_bucket(self, name: str) -> Location:
        """A new bucket, or the location of a missing one."""

    def location(self, bucket: str) -> Location:
        """The location of a bucket."""

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Write an object, without the code under test."""


class S3:
    """moto, which checks credentials once `require_credentials` was called."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.environ = {"AWS_ACCESS_KEY_ID": "AKIA" + "X" * 16, "AWS_SECRET_ACCESS_KEY": CANARY}

    def client(self, service: str = "s3"):  # type: ignore[no-untyped-def]
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=self.environ["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environ["AWS_SECRET_ACCESS_KEY"],
        )

    def location(self, bucket: str) -> Location:
        return Location(Kind.S3, bucket, "some/prefix", endpoint=self.url, flavour="ceph")

    def make_bucket(self, name: str) -> Location:
        self.client().create_bucket(Bucket=name)
        return self.location(name)

    def put(self, bucket: str, key: str, content: bytes) -> None:
        self.client().put_object(Bucket=bucket, Key=key, Body=content)

    def user(self, name: str, *actions: str) -> dict[str, str]:
        """The environment of a user who may only do `actions`."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    def require_credentials(self, required: bool = True) -> None:
        """Check credentials and permissions from now on; by default everything is allowed."""
        count = b"0" if required else b"inf"
        with urllib3.PoolManager() as pool:
            answer = pool.request("POST", f"{self.url}/moto-api/reset-auth", body=count)
            assert answer.status == 200, answer.data


class Azure:
    """Azurite, with its well-known account and key."""

    ACCOUNT = "devstoreaccount1"
    KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self, url: str) -> None:
        self._url = f"{url}/{self.ACCOUNT}"
        self.environ = {
            "AZURE_STORAGE_ACCOUNT": self.ACCOUNT,
            "AZURE_STORAGE_KEY": self.KEY,
            "AZURE_STORAGE_ENDPOINT": self._url,
        }

    def location(self, bucket: str) -> Location:
        return Location(Kind.AZURE, bucket, "some/prefix", account=self.ACCOUNT)

    def make_bucket(self, name: str) -> Location:
        self._put(f"{name}?restype=container", f"{name}\nrestype:container", b"", "")
        return self.location(name)

    def put(self, bucket: str, key: str, content: bytes) -> None:
        path = f"{bucket}/{quote(key)}"
        self._put(path, path, content, "BlockBlob")

    def _put(self, path: str, resource: str, content: bytes, blob_type: str) -> None:
        """Send a request signed with the account's key."""
        own = {"x-ms-blob-type": blob_type} if blob_type else {}
        own |= {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        length = str(len(content)) if content else ""
        octets = "application/octet-stream" if content else ""
        signed = [f"{name}:{value}" for name, value in sorted(own.items())]
        lines = ["PUT", "", "", length, "", octets, "", "", "", "", "", "", *signed]
        text = "\n".join([*lines, f"/{self.ACCOUNT}/{self.ACCOUNT}/{resource}"])
        digest = hmac.new(base64.b64decode(self.KEY), text.encode(), hashlib.sha256).digest()
        headers = own | {"authorization": f"SharedKey {self.ACCOUNT}:{base64.b64encode(digest).decode()}"}
        if content:
            headers["content-type"] = octets
        with urllib3.PoolManager() as pool:
            answer = pool.request("PUT", f"{self._url}/{path}", headers=headers, body=content)
        assert answer.status == 201, answer.data


class Gcs:
    """fake-gcs-server, with a front for the missing part of the XML API, which the library uses."""

    def __init__(self, url: str) -> None:
        self._url = url
        key = {
            "gcs_base_url": url,
            "disable_oauth": True,
            "client_email": "",
            "private_key": CANARY,
            "private_key_id": CANARY,
        }
        self.environ = {"GCS_SERVICE_ACCOUNT_JSON_KEY": json.dumps(key)}

    def location(self, bucket: str) -> Location:
        return Location(Kind.GCS, bucket, "some/prefix")

    def make_bucket(self, name: str) -> Location:
        self._post("storage/v1/b?project=test", json.dumps({"name": name}).encode())
        return self.location(name)

    def put(self, bucket: str, key: str, content: bytes) -> None:
        self._post(f"upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(key, safe='')}", content)

    def _post(self, path: str, body: bytes) -> None:
        with urllib3.PoolManager() as pool:
            answer = pool.request("POST", f"{self._url}/{path}", body=body)
        assert answer.status == 200, answer.data


class Volume:
    """A directory, like a mounted volume."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.environ: dict[str, str] = {}

    def location(self, bucket: str) -> Location:
        return Location(Kind.LOCAL, str(self._directory / bucket), "some/prefix")

    def make_bucket(self, name: str) -> Location:
        (self._directory / name).mkdir()
        return self.location(name)

    def put(self, bucket: str, key: str, content: bytes) -> None:
        path = self._directory / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def missing(name: str) -> str:
    """Why the tests with this server cannot run here; empty if they can. Raises if all are required."""
    program = {"gcs": STORAGES / "bin" / "fake-gcs-server", "azure": _AZURITE}.get(name)
    if program is None or program.exists():
        return ""
    reason = f"no server for {name} ({program} is missing): run `make storages`"
    if os.environ.get("REQUIRE_EVERYTHING"):
        raise RuntimeError(reason)
    return reason


_AZURITE = STORAGES / "node_modules" / ".bin" / "azurite-blob"


_SERVERS: dict[str, Callable[[str], Server]] = {"s3": S3, "azure": Azure, "gcs": Gcs}


@contextlib.contextmanager
def running(name: str, directory: Path) -> Iterator[Server]:
    """A server for as long as the block runs."""
    if name == "local":
        yield Volume(directory)
        return
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with _process(_command(name, port), directory), _answering(url):
        if name != "gcs":
            yield _SERVERS[name](url)
            return
        front = free_port()
        command = [sys.executable, gcs_front.__file__, str(front), url]
        with _process(command, directory), _answering(f"http://127.0.0.1:{front}"):
            yield Gcs(f"http://127.0.0.1:{front}")


def _command(name: str, port: int) -> Sequence[str]:
    match name:
        case "s3":
            return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        case "azure":
            options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
            return [str(_AZURITE), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
        case _:
            host = f"127.0.0.1:{port}"
            options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
            return [str(STORAGES / "bin" / "fake-gcs-server"), *options, "-public-host", host]


@contextlib.contextmanager
def _process(command: Sequence[str], directory: Path) -> Iterator[None]:
    with (directory / "server.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _answering(url: str) -> Iterator[None]:
    deadline = time.monotonic() + _PATIENCE  # noqa: TID251  (a real process)
    with urllib3.PoolManager(retries=False, timeout=1.0) as pool:
        while True:
            try:
                pool.request("GET", url)
                break
            except urllib3.exceptions.HTTPError:
                assert time.monotonic() < deadline, f"{url} does not answer"  # noqa: TID251
                time.sleep(0.05)  # noqa: TID251
    yield
