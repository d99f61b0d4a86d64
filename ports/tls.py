"""Client TLS contexts that accept the same authorities as Go, i.e. as `kubectl` and TiDB's own tools."""

import ssl


def verifying_context(*, cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    """A context that verifies name and certificate; without an authority, with the system's authorities.

    Since Python 3.13 the default rejects authorities without a key usage or a key identifier, which clusters use.
    Raises ssl.SSLError, OSError.
    """
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
