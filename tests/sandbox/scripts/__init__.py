"""Start scripts in the style of v1.6, written for these tests, in both generations (objects.md 7).

The first generation takes names from the pod's environment; the second contains `basic` and `default`.
"""

import importlib.resources


def script(component: str, generation: str = "v1", *, tls: bool = False, domain: str = "") -> str:
    """The script with the scheme and cluster domain of the spec."""
    text = importlib.resources.files(__name__).joinpath(f"{component}_{generation}.sh").read_text("utf-8")
    text = text.replace("SCHEME://", "https://" if tls else "http://")
    return text.replace(".svc@DOMAIN@", f".svc.{domain}" if domain else ".svc")
