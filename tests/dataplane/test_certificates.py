"""Certificates as OpenSSL reads and judges them (objects.md 9.1)."""

from datetime import timedelta

import pytest

from dataplane.certificates import BadCertificate, Role, authority_of, check_trust, read
from tests.certificates import TODAY, Authority, Pair

_AUTHORITY, _ANOTHER = Authority(), Authority()
_DAY = timedelta(days=1)


@pytest.mark.parametrize("role", Role)
@pytest.mark.rule("objects-9.1")
def test_reads_names_and_dates_of_a_certificate_from_any_issuer(role: Role) -> None:
    pair = _AUTHORITY.pair("basic-pd", "*.basic-pd-peer.default", "127.0.0.1", begins=TODAY, ends=TODAY + _DAY)
    found = read(pair.cert, pair.key, role)
    assert ("basic-pd", "*.basic-pd-peer.default", "127.0.0.1") == found.names
    assert (TODAY, TODAY + _DAY) == (found.begins, found.ends)


@pytest.mark.parametrize(
    ("host", "covered"),
    [
        ("basic-pd", True),
        ("BASIC-PD", True),
        ("basic-pd-0.basic-pd-peer.default", True),
        ("basic-pd-peer.default", False),
        ("a.b.basic-pd-peer.default", False),
        ("basic-pd.default", False),
    ],
)
@pytest.mark.rule("objects-9.1")
def test_a_wildcard_matches_one_label(host: str, covered: bool) -> None:
    pair = _AUTHORITY.pair("basic-pd", "*.basic-pd-peer.default")
    assert covered == read(pair.cert, pair.key).covers(host)


@pytest.mark.rule("objects-9.1")
def test_rejects_a_key_that_does_not_match_its_certificate() -> None:
    one, other = _AUTHORITY.pair("a"), _AUTHORITY.pair("a")
    with pytest.raises(BadCertificate, match=r"^tls.crt makes no usable pair with tls.key: .*key values mismatch"):
        read(one.cert, other.key)
    with pytest.raises(BadCertificate, match=r"^tls.crt makes no usable pair with tls.key"):
        read(b"-----BEGIN", one.key)


@pytest.mark.rule("objects-9.1")
def test_finds_the_authority_of_a_certificate() -> None:
    pair = _AUTHORITY.pair("a")
    certificate = read(pair.cert, pair.key)
    found = authority_of(_ANOTHER.ca + _AUTHORITY.ca, certificate)
    assert found is not None
    assert found.ends > certificate.ends
    assert authority_of(_ANOTHER.ca, certificate) is None
    with pytest.raises(BadCertificate, match=r"^ca.crt contains no usable certificate"):
        authority_of(b"nothing", certificate)


@pytest.mark.parametrize("role", Role)
@pytest.mark.rule("objects-9.1")
def test_checks_trust_in_an_authority(role: Role) -> None:
    def check(pair: Pair, ca: bytes) -> None:
        check_trust(pair.cert, pair.key, role, ca)

    check(_AUTHORITY.pair("a"), _AUTHORITY.ca)
    check(_AUTHORITY.pair("a"), _ANOTHER.ca + _AUTHORITY.ca)
    # the dates are compared elsewhere, with the operator's clock
    check(_AUTHORITY.pair("a", begins=TODAY - 9 * _DAY, ends=TODAY - _DAY), _AUTHORITY.ca)
    with pytest.raises(BadCertificate, match=r"^tls.crt is not accepted: unable to get local issuer certificate"):
        check(_AUTHORITY.pair("a"), _ANOTHER.ca)
