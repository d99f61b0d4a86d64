"""Certificates for 127.0.0.1, for tests."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from dataplane.tls import TlsMaterial


class Authority:
    """A throw-away CA that openssl creates."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl makes the certificates, and there is none")
        self._directory = directory
        self._openssl("req", "-x509", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.crt")
        for name in ("server", "client"):
            self._openssl("req", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            self._sign(name)

    def _openssl(self, *arguments: str) -> None:
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"] if "req" in arguments else []
        subprocess.run(["openssl", *arguments, *new_key], cwd=self._directory, check=True, capture_output=True)

    def _sign(self, name: str) -> None:
        (self._directory / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
        files = ["-in", f"{name}.csr", "-out", f"{name}.crt", "-extfile", "ext"]
        self._openssl("x509", "-req", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", *files)

    def read(self, name: str) -> bytes:
        """The content of a file, e.g. `ca.crt` or `server.key`."""
        return (self._directory / name).read_bytes()

    def material(self, name: str) -> TlsMaterial:
        """The TLS material of `server` or `client`."""
        return TlsMaterial(self.read("ca.crt"), self.read(f"{name}.crt"), self.read(f"{name}.key"))

    def server(self) -> ssl.SSLContext:
        """The context of a server that demands client certificates."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._directory / "server.crt", self._directory / "server.key")
        context.load_verify_locations(self._directory / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        return context
