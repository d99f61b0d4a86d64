"""Webhooks of the sandbox (`sandbox.webhooks`) that a real API server calls for pods and their controllers."""

import base64
import contextlib
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from kube.client import Client
from kube.objects import Json
from kube.resources import DEPLOYMENTS, PODS, STATEFUL_SETS, Resource
from sandbox.webhooks import WEBHOOKS
from tests.kube.servers import Certificates

_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)


def _patched(request: Json, names: Sequence[str]) -> list[Json]:
    """The webhooks' changes of an object, as a JSON patch of the object and its metadata."""
    kind = request["kind"]
    resource = next(each for each in (PODS, STATEFUL_SETS, DEPLOYMENTS) if each.kind == kind["kind"])
    tree = request["object"]
    for name in names:
        WEBHOOKS[name](resource, tree, request["oldObject"])
    return [{"op": "add", "path": f"/{field}", "value": tree[field]} for field in ("metadata", "spec")]


@contextlib.contextmanager
def asked(client: Client, names: Sequence[str], namespace: str, certificates: Certificates) -> Iterator[None]:
    """The API server calls the webhooks for writes in a namespace."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))["request"]
            patch = base64.b64encode(msgspec.json.encode(_patched(request, names))).decode()
            response = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
            body = msgspec.json.encode(review)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = certificates.context().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name="webhooks")
    thread.start()
    rules = [
        {"apiGroups": [each.group], "apiVersions": [each.version], "operations": ["CREATE", "UPDATE"]}
        | {"resources": [each.plural]}
        for each in (PODS, STATEFUL_SETS, DEPLOYMENTS)
    ]
    webhook = {
        "name": "policy.example.com",
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.server_address[1]}/",
            "caBundle": base64.b64encode(certificates.ca).decode(),
        },
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body = {"apiVersion": _CONFIGURATIONS.api_version, "kind": _CONFIGURATIONS.kind, "webhooks": [webhook]}
    client.create(_CONFIGURATIONS, body | {"metadata": {"name": namespace}})
    try:
        yield
    finally:
        client.delete(_CONFIGURATIONS, namespace)
        server.shutdown()
        thread.join()
        server.server_close()
