"""The DNS server of real pods: names of Services and pods, over UDP and TCP. It knows no other names."""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address

from dnslib import QTYPE, RCODE, RR, A, DNSError, DNSHeader, DNSRecord

Addresses = Callable[[str], list[str]]
"""The addresses of a full name, e.g. `basic-pd.default.svc.cluster.local`."""

_TTL = 1
_LARGEST = 4096
_TIMEOUT = 5.0


def answer(query: bytes, addresses: Addresses) -> bytes | None:
    """The answer to a query; None if it is not one that can be answered."""
    try:
        asked = DNSRecord.parse(query)
    except DNSError:
        return None
    if asked.header.qr or not asked.questions:
        return None
    reply = DNSRecord(DNSHeader(id=asked.header.id, qr=1, aa=1, rd=asked.header.rd, ra=1), q=asked.q)
    known = addresses(str(asked.q.qname).rstrip(".").lower())
    if not known:
        reply.header.rcode = RCODE.NXDOMAIN
    elif asked.q.qtype == QTYPE.A:
        for address in sorted(known, key=IPv4Address):
            reply.add_answer(RR(asked.q.qname, QTYPE.A, ttl=_TTL, rdata=A(address)))
    packed: bytes = reply.pack()
    return packed


def answer_datagram(listening: socket.socket, addresses: Addresses) -> None:
    """Answer one query over UDP."""
    query, sender = listening.recvfrom(_LARGEST)
    if (packet := answer(query, addresses)) is not None:
        listening.sendto(packet, sender)


def answer_stream(connection: socket.socket, addresses: Addresses) -> None:
    """Answer the queries of a TCP connection until it ends. Raises OSError."""
    connection.settimeout(_TIMEOUT)
    with connection, connection.makefile("rb") as reader:
        while len(head := reader.read(2)) == 2:
            packet = answer(reader.read(int.from_bytes(head, "big")), addresses)
            if packet is None:
                return
            connection.sendall(len(packet).to_bytes(2, "big") + packet)
