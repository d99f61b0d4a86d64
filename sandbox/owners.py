"""Owners of objects: controller references as the built-in controllers read and write them."""

from kube.objects import Json


def controller_reference(owner: Json) -> Json:
    """The reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_uid(tree: Json) -> str:
    """The uid of the controller of an object, or an empty string."""
    for reference in tree["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            uid: str = reference["uid"]
            return uid
    return ""


def is_deleted(tree: Json) -> bool:
    """True if the object is being deleted."""
    return bool(tree["metadata"].get("deletionTimestamp"))
