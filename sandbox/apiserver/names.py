"""What names may look like (RFC 1123), and how the server makes them up."""

import re
from collections.abc import Iterable, Iterator

from ports.randomness import Randomness
from sandbox.apiserver.refusals import FieldError, invalid_value, required

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED = 58

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_HELP = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SERVICE_HELP = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_KEY_HELP = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_HELP = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_CONFIG_KEY_HELP = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)

_LABEL_NAMES = frozenset({"namespaces", "statefulsets.apps"})
_FREE_NAMES = frozenset(
    f"{kind}.rbac.authorization.k8s.io" for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
)


def generated(prefix: str, randomness: Randomness) -> str:
    """A name for `metadata.generateName`: the prefix and five characters."""
    letters = (_SUFFIX_LETTERS[randomness.integer(0, len(_SUFFIX_LETTERS) - 1)] for _ in range(_SUFFIX_LENGTH))
    return prefix[:_MAX_GENERATED] + "".join(letters)


def name_errors(resource: str, name: str) -> list[FieldError]:
    """What is wrong with the name of an object of that resource (`plural.group`)."""
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if resource in _FREE_NAMES:
        return []
    if resource == "services":
        fits, limit, help_ = re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", name), 63, _SERVICE_HELP
    elif resource in _LABEL_NAMES:
        fits, limit, help_ = _LABEL.fullmatch(name), 63, _LABEL_HELP
    else:
        fits, limit, help_ = _SUBDOMAIN.fullmatch(name), 253, _SUBDOMAIN_HELP
    errors = []
    if len(name) > limit:
        errors.append(invalid_value("metadata.name", name, f"must be no more than {limit} characters"))
    if not fits:
        errors.append(invalid_value("metadata.name", name, help_))
    return errors


def label_errors(labels: dict[str, str], path: str) -> list[FieldError]:
    """What is wrong with labels: keys are qualified names, values at most 63 characters."""
    errors = []
    for key, value in labels.items():
        if not _QUALIFIED.fullmatch(key.rpartition("/")[2]):
            errors.append(invalid_value(path, key, _LABEL_KEY_HELP))
        if len(value) > 63:
            errors.append(invalid_value(path, value, "must be no more than 63 bytes"))
        if value and not _QUALIFIED.fullmatch(value):
            errors.append(invalid_value(path, value, _LABEL_VALUE_HELP))
    return errors


def config_key_errors(keys: Iterable[str], path: str) -> Iterator[FieldError]:
    """What is wrong with the keys of a ConfigMap or Secret, which are names of files."""
    for key in keys:
        if not _CONFIG_KEY.fullmatch(key) or key in (".", ".."):
            yield invalid_value(f"{path}[{key}]", key, _CONFIG_KEY_HELP)
