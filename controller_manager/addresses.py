"""Listen addresses in Go's format."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `:6060`, `127.0.0.1:6060`, `[::1]:6060` or `host:0`; an empty host means all interfaces.

    Raises ValueError, which describes the format.
    """
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address to listen on; write [host]:port, such as :6060")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{text!r} is not an address to listen on; write an IPv6 host in brackets, such as [::1]:6060")
    return host.removeprefix("[").removesuffix("]"), int(port)
