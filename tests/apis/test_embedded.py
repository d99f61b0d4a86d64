"""The types that specs embed are those that Kubernetes publishes."""

import msgspec
import pytest

from apis import embedded
from sandbox.apiserver.import_types import Types, packaged_fields, published_types


def _known() -> Types:
    found: Types = msgspec.json.decode(embedded.PUBLISHED.read_bytes())
    return found


def test_types_match_the_published_schemas() -> None:
    known = _known()
    published = published_types()
    assert set(known) == set(published)
    for name, fields in published.items():
        assert fields == {field: kind for field, kind in known[name].items() if field in fields}


@pytest.mark.slow
def test_every_field_of_the_installed_client_is_known() -> None:
    missing = [
        f"{name}.{field}" for name, fields in _known().items() for field in set(packaged_fields(name)) - set(fields)
    ]
    assert [] == missing


def test_a_model_has_the_fields_of_its_type() -> None:
    for name, fields in _known().items():
        assert set(fields) == {each.encode_name for each in msgspec.structs.fields(embedded.shape(name))}
