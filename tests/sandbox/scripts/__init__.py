"""Start scripts in the manner of v1.6, written for these tests: both generations (objects.md 7).

Names of the first generation come from the pod's environment; the second has `basic` and `default` in its text.
"""

import importlib.resources


def script(component: str, generation: str = "v1", *, tls: bool = False, domain: str = "") -> str:
    """The text, with the scheme and the cluster's domain that the spec asks for."""
    text = importlib.resources.files(__name__).joinpath(f"{component}_{generation}.sh").read_text("utf-8")
    text = text.replace("SCHEME://", "https://" if tls else "http://")
    return text.replace(".svc@DOMAIN@", f".svc.{domain}" if domain else ".svc")
