"""Validation of names (RFC 1123), and generation of names."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ports.randomness import Randomness
from sandbox.apiserver.refusals import FieldError, invalid_value, required

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED = 58

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_HELP = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
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

_LABEL_NAMES = frozenset({"namespaces", "services", "statefulsets.apps"})
_FREE_NAMES = frozenset(
    f"{kind}.rbac.authorization.k8s.io" for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
)


def generated(prefix: str, randomness: Randomness) -> str:
    """A name for `metadata.generateName`: the prefix and five characters."""
    letters = (_SUFFIX_LETTERS[randomness.integer(0, len(_SUFFIX_LETTERS) - 1)] for _ in range(_SUFFIX_LENGTH))
    return prefix[:_MAX_GENERATED] + "".join(letters)


def name_errors(resource: str, name: str) -> list[FieldError]:
    """The errors in the name of an object of a resource (`plural.group`)."""
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if resource in _FREE_NAMES:
        return []
    return list((dns_label if resource in _LABEL_NAMES else dns_subdomain)(name, "metadata.name"))


def dns_label(name: str, path: str) -> Iterator[FieldError]:
    """The errors in a name without dots."""
    if len(name) > 63:
        yield invalid_value(path, name, "must be no more than 63 characters")
    if not _LABEL.fullmatch(name):
        has_dots = "." in name and is_subdomain(name)
        yield invalid_value(path, name, "must not contain dots" if has_dots else LABEL_HELP)


def dns_subdomain(name: str, path: str) -> Iterator[FieldError]:
    """The errors in a name that may contain dots."""
    if len(name) > 253:
        yield invalid_value(path, name, "must be no more than 253 characters")
    if not _SUBDOMAIN.fullmatch(name):
        yield invalid_value(path, name, SUBDOMAIN_HELP)


def label_errors(labels: dict[str, str], path: str) -> list[FieldError]:
    """The errors in labels: keys are qualified names, values have at most 63 characters."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += key_errors(key, path)
        errors += label_value_errors(value, path)
    return errors


def label_value_errors(value: str, path: str) -> Iterator[FieldError]:
    """The errors in the value of a label or selector."""
    if len(value) > 63:
        yield invalid_value(path, value, "must be no more than 63 bytes")
    if value and not _QUALIFIED.fullmatch(value):
        yield invalid_value(path, value, _LABEL_VALUE_HELP)


def key_errors(key: str, path: str) -> Iterator[FieldError]:
    """The errors in the key of a label, or in another qualified name."""
    for detail in _wrong_with_key(key):
        yield invalid_value(path, key, detail)


@lru_cache(maxsize=4096)
def _wrong_with_key(key: str) -> tuple[str, ...]:
    prefix, slash, name = key.rpartition("/")
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash and not is_subdomain(prefix):
        found.append(f"prefix part {SUBDOMAIN_HELP}")
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        found.append(_LABEL_KEY_HELP)
    return tuple(found)


def annotation_errors(annotations: Iterable[str], path: str) -> Iterator[FieldError]:
    """The errors in the keys of annotations, which ignore case."""
    for key in annotations:
        yield from key_errors(key, path)


def is_subdomain(name: str) -> bool:
    """True for a lower-case name that may contain dots."""
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def config_key_errors(keys: Iterable[str], path: str) -> Iterator[FieldError]:
    """The errors in the keys of a ConfigMap or Secret, which are file names."""
    for key in keys:
        if not _CONFIG_KEY.fullmatch(key) or key in (".", ".."):
            yield invalid_value(f"{path}[{key}]", key, _CONFIG_KEY_HELP)
