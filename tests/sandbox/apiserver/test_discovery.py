"""The requests that kubectl sends before it reads resources."""

from ports.transport import Request
from sandbox.apiserver.openapi_v2 import PROTOBUF, PROTOBUF_TYPES
from tests.sandbox.apiserver.calls import DEFINITIONS, Calls, definition


def test_health_and_version(call: Calls) -> None:
    for path in ("/healthz", "/readyz", "/livez"):
        assert b"ok" == call.server.handle("x", Request("GET", path)).body
    assert ("1", "36") == (call("GET", "/version").tree["major"], call("GET", "/version").tree["minor"])


def test_groups_and_resources(call: Calls) -> None:
    assert ["v1"] == call("GET", "/api").tree["versions"]
    groups = {group["name"] for group in call("GET", "/apis").tree["groups"]}
    assert {"apps", "batch", "coordination.k8s.io", "apiextensions.k8s.io"} <= groups
    resources = {entry["name"]: entry for entry in call("GET", "/apis/apps/v1").tree["resources"]}
    assert ("StatefulSet", ["sts"], ["all"]) == (
        resources["statefulsets"]["kind"],
        resources["statefulsets"]["shortNames"],
        resources["statefulsets"]["categories"],
    )
    assert ("Scale", "autoscaling") == (
        resources["statefulsets/scale"]["kind"],
        resources["statefulsets/scale"]["group"],
    )


def test_custom_resources_appear_and_disappear(call: Calls) -> None:
    call.made(DEFINITIONS, definition({"type": "object"}))
    assert "widgets" == call("GET", "/apis/example.com/v1").tree["resources"][0]["name"]
    call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert 404 == call.server.handle("x", Request("GET", "/apis/example.com/v1")).status


def test_aggregated_discovery_says_so_in_its_content_type(call: Calls) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer = call("GET", "/apis", accept=f"{accept},application/json")
    assert ("APIGroupDiscoveryList", accept) == (answer.tree["kind"], answer.headers["content-type"])
    apps = next(item for item in answer.tree["items"] if item["metadata"]["name"] == "apps")
    sets = next(one for one in apps["versions"][0]["resources"] if one["resource"] == "statefulsets")
    assert ["scale", "status"] == [one["subresource"] for one in sets["subresources"]]


def test_openapi_announces_validation_of_fields_to_kubectl(call: Calls) -> None:
    call.made(DEFINITIONS, definition({"type": "object"}))
    index = call("GET", "/openapi/v3").tree["paths"]
    document = call("GET", index["apis/example.com/v1"]["serverRelativeURL"]).tree
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "Widget" == patch["x-kubernetes-group-version-kind"]["kind"]
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def test_openapi_references_resolve(call: Calls) -> None:
    document = call("GET", "/openapi/v3/apis/apps/v1").tree
    schemas = document["components"]["schemas"]
    template = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert "name" == template["x-kubernetes-patch-merge-key"]
    prefix = "#/components/schemas/"
    references = [text.partition('"')[0] for text in str(document).replace("'", '"').split(f'"$ref": "{prefix}')[1:]]
    assert references
    assert set(references) <= set(schemas)


def test_unknown_paths(call: Calls) -> None:
    known_group = call("GET", "/apis/apps/v1/widgets")
    assert (404, "the server could not find the requested resource") == (known_group.code, known_group.tree["message"])
    unknown = call.server.handle("x", Request("GET", "/apis/nope/v1/things"))
    assert (404, b"404 page not found\n") == (unknown.status, unknown.body)
    assert 405 == call("PUT", "/api/v1/namespaces/default/pods", {}).code


def test_openapi_v2_has_every_definition_that_it_refers_to(call: Calls) -> None:
    call.made(DEFINITIONS, definition({"type": "object", "properties": {"size": {"x-kubernetes-int-or-string": True}}}))
    document = call("GET", "/openapi/v2").tree
    definitions = document["definitions"]
    assert "2.0" == document["swagger"]
    assert "com.example.v1.Widget" in definitions
    assert (
        "#/definitions/io.k8s.api.core.v1.PodSpec"
        == definitions["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"]
    )
    assert "string" == definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"]
    assert set() == {name.removeprefix("#/definitions/") for name in _references(definitions)} - definitions.keys()
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in {each["name"] for each in patch["parameters"]}


def _references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_references(each) for each in node.values()))
    return set()


def test_openapi_v2_is_protobuf_for_kubectl(call: Calls) -> None:
    for accept in PROTOBUF_TYPES:
        answer = call.server.handle("x", Request("GET", "/openapi/v2", {"accept": accept}))
        assert (200, PROTOBUF) == (answer.status, answer.headers["content-type"])
        assert answer.body.startswith(b"\x0a\x032.0\x12")
