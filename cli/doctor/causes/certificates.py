"""Problems with certificate Secrets, tested as by the operator (objects.md 9.1)."""

from collections.abc import Iterator

from apis.times import stamp
from cli.doctor.facts import Facts
from cli.doctor.finding import Cause, Severity, Sign
from meta.certificates import SOON, trouble_of


def _bad(facts: Facts) -> Iterator[Sign]:
    for name, finding in facts.certificates.items():
        if message := trouble_of(finding, facts.now):
            yield Sign(f"Secret {name}", message.lstrip(" ,:"), finding.key)


def _ending(facts: Facts) -> Iterator[Sign]:
    for name, finding in facts.certificates.items():
        if finding.ends and not trouble_of(finding, facts.now) and finding.ends - facts.now <= SOON:
            yield Sign(f"Secret {name}", "expires soon", finding.key, stamp(finding.ends))


CAUSES = (
    Cause(
        "BadCertificate",
        "Create or renew it: `tidb-operator certs`, cert-manager; see docs/tls.md.",
        _bad,
    ),
    Cause(
        "CertificateExpiresSoon",
        "Renew it; servers reread it by themselves.",
        _ending,
        Severity.WARNING,
    ),
)
