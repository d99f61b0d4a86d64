"""Short requests for the tests of the API server."""

from dataclasses import dataclass
from typing import Any

import msgspec

from kube.objects import Json
from ports.transport import Request
from sandbox.apiserver import ApiServer

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a decoded body."""

    code: int
    tree: Json
    headers: Json


class Calls:
    """Sends requests of one user to a server."""

    def __init__(self, server: ApiServer, user: str = "tester") -> None:
        self.server = server
        self._user = user

    def __call__(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
    ) -> Answer:
        """Send one request."""
        raw = None if body is None else msgspec.json.encode(body)
        headers = {"content-type": content_type, "accept": accept}
        answer = self.server.handle(self._user, Request(method, path, headers, raw))
        return Answer(answer.status, msgspec.json.decode(answer.body), dict(answer.headers))

    def made(self, path: str, body: Json) -> Json:
        """Create an object, which must succeed."""
        answer = self("POST", path, body)
        assert answer.code == 201, answer.tree
        return answer.tree

    def merged(self, path: str, patch: Json) -> Answer:
        """Send a merge patch."""
        return self("PATCH", path, patch, content_type=MERGE)


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


def pod(name: str, /, **spec: Any) -> Json:
    """A pod with one container."""
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "pingcap/pd:v8.5.2"}], **spec},
    }


def workload(name: str, /, **spec: Any) -> Json:
    """A StatefulSet or Deployment."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def definition(schema: Json, **version: Any) -> Json:
    """A CustomResourceDefinition of `widgets.example.com` whose spec has the schema."""
    properties = {"spec": schema, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    **version,
                }
            ],
        },
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def widget(name: str, /, **spec: Any) -> Json:
    """A custom resource."""
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
