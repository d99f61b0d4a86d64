"""The operator in a sandbox, and what a user of any namespace applies to it and reads of it."""

from collections.abc import Iterable
from typing import Any

import pytest

from apis.consent import ALLOWED_FROM
from cli import manifests
from kube.objects import Json
from kube.resources import EVENTS, TIDB_CLUSTERS, Resource
from tests.operator_world import NAMESPACE, OperatorWorld


def of_case(name: str, **expected: Any) -> pytest.MarkDecorator:
    """Run a test on the file of a case; `ours` and `shared` are its expectations for either, if they differ."""
    sources = ("ours", "shared")
    if not expected:
        return pytest.mark.parametrize("path", [(source, name) for source in sources], indirect=True, ids=sources)
    cases = [((source, name), expected[source]) for source in sources]
    return pytest.mark.parametrize(("path", "expected"), cases, indirect=["path"], ids=sources)


class CaseWorld(OperatorWorld):
    """Objects of users in all namespaces."""

    def apply_all(self, documents: Iterable[Json]) -> None:
        """Create objects as `kubectl apply -f` does, and missing namespaces with them."""
        manifests.apply(self.admin, [manifests.Manifest("case", each) for each in documents])

    def conditions(self, resource: Resource, name: str, namespace: str = NAMESPACE) -> dict[str, tuple[str, str, str]]:
        """Status, reason and message of the conditions of an object, by their types."""
        status = self.admin.get(resource, name, namespace).decode().get("status") or {}
        found = status.get("conditions") or ()
        return {each["type"]: (each["status"], each.get("reason", ""), each.get("message", "")) for each in found}

    def message(self, resource: Resource, name: str, kind: str, namespace: str = NAMESPACE) -> str:
        """The message of a condition that is True; empty while there is none."""
        status, _, message = self.conditions(resource, name, namespace).get(kind, ("", "", ""))
        return message if status == "True" else ""

    def serves(self, name: str, namespace: str = NAMESPACE) -> bool:
        """True if a TidbCluster is Ready."""
        return self.conditions(TIDB_CLUSTERS, name, namespace).get("Ready", ("",))[0] == "True"

    def warnings(self, name: str, namespace: str = NAMESPACE) -> list[str]:
        """The messages of the Warning events about an object."""
        found = [each.decode() for each in self.admin.list_page(EVENTS, namespace).items]
        about = [each for each in found if each["involvedObject"]["name"] == name and each["type"] == "Warning"]
        return [str(each["message"]) for each in about]

    def consent(self, name: str, namespace: str, author: str) -> None:
        """Let a TidbCluster allow references from another namespace."""
        body = {"metadata": {"annotations": {ALLOWED_FROM: author}}}
        self.admin.patch(TIDB_CLUSTERS, name, namespace, body)
