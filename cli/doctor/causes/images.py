"""Images that cannot be pulled, with the container runtime's reason (from events, and newer kubelets' statuses)."""

import re
from collections.abc import Callable, Iterator

from apis.accessor import find
from apis.decoding import InvalidField
from apis.defaulting import with_defaults
from cli.doctor.causes.texts import Message, Text, causes
from cli.doctor.facts import Facts, component_of, containers_of, field_of, is_deleted, pod, pod_model
from cli.doctor.finding import Cause, Sign
from kube.objects import Json
from kube.resources import SECRETS
from member.observed.pod import OF_IMAGES, ContainerWaiting


def _unpulled(facts: Facts) -> Iterator[tuple[Json, str, ContainerWaiting]]:
    """The pods with an image that could not be pulled, the image, and why the container waits."""
    for each in facts.pods:
        images = {container["name"]: str(container.get("image", "")) for container in containers_of(each)}
        status = pod_model(each).status
        for container in (*status.init_container_statuses, *status.container_statuses):
            waiting = container.state.waiting
            if waiting and waiting.reason in OF_IMAGES and not is_deleted(each):
                yield each, images.get(container.name, container.image), waiting


def _image_messages(facts: Facts) -> Iterator[Message]:
    """The messages about each image. Older kubelets report a back-off only in events."""
    for each, image, waiting in _unpulled(facts):
        events = [event.message for event in facts.events(each, "Pod") if image in event.message]
        yield Message(each, pod(each), f"{image} {waiting.reason}: {' '.join([waiting.message, *events[-2:]])}")


def _sign(what: str, *, of_repository: bool = False) -> Callable[[Facts, Message, re.Match[str]], Sign]:
    def sign(facts: Facts, message: Message, _: re.Match[str]) -> Sign:
        image = message.text.partition(" ")[0]
        return Sign(message.object, what, _image_field(facts, message.tree, image, of_repository), image)

    return sign


def _image_field(facts: Facts, tree: Json, image: str, of_repository: bool) -> str:
    """The field of the spec with the repository or version of an image."""
    known = None if isinstance(facts.model, InvalidField) else find(with_defaults(facts.model), component_of(tree))
    if known is None or known.image != image:
        return field_of(facts, tree, "image")
    if of_repository and not known.runs_image_field:
        return f"{known.field}.baseImage"
    return known.version_field


_OF_PLATFORM = r"no match(?:ing manifest)? for (?:platform|\S+/\S+)"
_DENIED = r"(?i:denied|unauthori[sz]ed|authorization failed|authentication required|forbidden)"
_NETWORK = r"dial tcp|no such host|i/o timeout|connection refused|TLS handshake|x509:|toomanyrequests|Too Many Requests"

_TEXTS = (
    Text(
        "ImageForAnotherArchitecture",
        _OF_PLATFORM,
        "Take an image for it, or let pods run on other nodes: `nodeSelector: {kubernetes.io/arch: amd64}`.",
        _sign("the image does not exist for the architecture of the node"),
    ),
    Text(
        "ImageForbidden",
        _DENIED,
        "Correct `baseImage`; for a private registry, name a Secret of it in `imagePullSecrets`.",
        _sign("the registry refuses the image: no such repository, or no right to it", of_repository=True),
    ),
    Text(
        "ImageNotFound",
        rf"^(?!.*(?:{_OF_PLATFORM}|{_DENIED})).*(?i:not found|manifest unknown)",
        "Correct `version`, `baseImage`, or push the image; pods that it broke get the new one by themselves.",
        _sign("the registry does not have the image"),
    ),
    Text(
        "RegistryUnreachable",
        _NETWORK,
        "Check DNS, proxy, firewall and certificates of the node; use a mirror.",
        _sign("the node does not reach the registry"),
    ),
    Text(
        "InvalidImageName",
        r"InvalidImageName",
        "Correct `version`, `baseImage` or `image`.",
        _sign("the name of the image cannot be read"),
    ),
)

_OTHER = Text(
    "ImageNotPulled",
    "",
    "`kubectl describe pod` shows what is message.",
    _sign("the image cannot be pulled"),
)


def _pull_secrets(facts: Facts) -> Iterator[Sign]:
    for each, _, _ in _unpulled(facts):
        named = [str(secret.get("name")) for secret in each["spec"].get("imagePullSecrets") or ()]
        missing = [name for name in named if facts.knows(SECRETS) and name not in facts.names(SECRETS)]
        if missing:
            yield Sign(
                pod(each), "the Secret does not exist", field_of(facts, each, "imagePullSecrets"), ", ".join(missing)
            )


CAUSES = (
    Cause(
        "ImagePullSecretMissing",
        "`kubectl create secret docker-registry NAME …` in the namespace of the cluster.",
        _pull_secrets,
    ),
    *causes(_image_messages, _TEXTS, _OTHER),
)
