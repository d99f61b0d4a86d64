"""An API server learns of policies, quotas and rights through its own informers: they take effect after their creation.
A policy takes up to a second, the interval in which the server looks for changes."""

import msgspec

from kube.client import Client
from kube.errors import ApiError, Forbidden, TooManyRequests
from kube.objects import Json
from kube.resources import Resource
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place


def would_accept(client: Client, resource: Resource, body: Json, namespace: str) -> Json:
    """The server's answer to a dry run of an object. Raises ApiError."""
    path = f"{resource.path(namespace)}?dryRun=All&fieldValidation=Strict"
    tree: Json = msgspec.json.decode(client.request("POST", path, body=body).body)
    return tree


def await_refusal(client: Client, resource: Resource, body: Json, namespace: str, because: str) -> None:
    """Wait until admission refuses an object. Raises ApiError for another reason than that."""

    def is_refused() -> bool:
        try:
            would_accept(client, resource, body, namespace)
        except ApiError as error:
            if because not in str(error):
                raise
            return True
        return False

    eventually(is_refused)


def await_change(client: Client, resource: Resource, body: Json, namespace: str) -> None:
    """Wait until a webhook changes the images of a pod."""
    images = [each["image"] for each in body["spec"]["containers"]]

    def is_changed() -> bool:
        accepted = would_accept(client, resource, body, namespace)
        return images != [each["image"] for each in accepted["spec"]["containers"]]

    eventually(is_changed)


def await_right(place: Place, account: str, resource: Resource, namespace: str) -> None:
    """Wait until a service account may list objects of its namespace, the last of its rights to take effect."""
    client = Client(place.account(namespace, account))

    def is_allowed() -> bool:
        try:
            client.list_page(resource, namespace)
        except (Forbidden, TooManyRequests):  # the latter while the storage of a new definition is initialized
            return False
        return True

    eventually(is_allowed)
