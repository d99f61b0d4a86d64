import pytest

from kube.client import Client
from kube.errors import ApiError
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from ports.transport import Response
from tests.kube.fakes import ScriptedTransport, answer

COLUMNS = [{"name": "Status", "format": ""}, {"name": "Name", "format": "name"}]


def table(**parts: object) -> Json:
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": COLUMNS, **parts}


def names(answered: Json | bytes) -> tuple[list[str], ScriptedTransport]:
    response = Response(200, {}, answered) if isinstance(answered, bytes) else answer(200, answered)
    transport = ScriptedTransport([response])
    return Client(transport).list_names(PERSISTENT_VOLUME_CLAIMS, "ns"), transport


def test_lists_names_without_objects() -> None:
    found, transport = names(table(rows=[{"cells": ["Bound", "a"]}, {"cells": ["Lost", "b"], "object": {}}]))
    (request,) = transport.requests
    assert ["a", "b"] == found
    assert "/api/v1/namespaces/ns/persistentvolumeclaims?includeObject=None" == request.url
    assert "application/json;as=Table;g=meta.k8s.io;v=v1" == request.headers["accept"]


@pytest.mark.parametrize("rows", [{}, {"rows": None}, {"rows": []}])
def test_an_empty_table_has_no_names(rows: Json) -> None:
    assert [] == names(table(**rows))[0]


@pytest.mark.parametrize(
    ("answered", "why"),
    [
        ({"kind": "PersistentVolumeClaimList", "items": []}, "a PersistentVolumeClaimList instead of a Table"),
        (table(columnDefinitions=[{"name": "Name"}]), "a Table without names"),
        (b"<html>", "undecodable answer"),
        (table(rows=[{}]), "undecodable answer"),
    ],
)
def test_an_answer_without_names_is_a_failure(answered: Json | bytes, why: str) -> None:
    with pytest.raises(ApiError, match=why):
        names(answered)
