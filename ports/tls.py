"""TLS contexts of clients that accept what Go's accept, as those of `kubectl` and TiDB's own tools do."""

import ssl


def verifying_context(*, cafile: str | None = None, cadata: str | None = None) -> ssl.SSLContext:
    """One that checks the server's name and certificate; without an authority, by those of the system.

    From Python 3.13 on the default refuses authorities without a key usage or an identifier of their key, which
    clusters have. Raises ssl.SSLError, OSError.
    """
    context = ssl.create_default_context(cafile=cafile, cadata=cadata)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
