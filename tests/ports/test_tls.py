"""Clients accept the same authorities under every version of Python."""

import ssl
from typing import Any

import pytest

from ports.tls import verifying_context


def test_accepts_authorities_that_newer_pythons_reject_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ssl.create_default_context

    def as_of_python_3_13(**authority: Any) -> ssl.SSLContext:
        context = made(**authority)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", as_of_python_3_13)
    context = verifying_context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert (True, ssl.CERT_REQUIRED) == (context.check_hostname, context.verify_mode)
