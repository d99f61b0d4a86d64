"""Software bills of materials in CycloneDX 1.5, generated from the locks that images and the plugin are built from."""

import json
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release.source import Source, commit

_ENTRY = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, Any]]:
    """The distributions of a lock. The hashes belong to every file that pip may take for them."""
    found = []
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        if named := _ENTRY.match(entry):
            name, version = named["name"].lower(), named["version"]
            hashes = [{"alg": "SHA-256", "content": each} for each in _HASH.findall(entry)]
            purl = f"pkg:pypi/{name}@{version}"
            reference = {"type": "distribution", "url": purl, "hashes": hashes}
            found.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": name,
                    "version": version,
                    "purl": purl,
                    "externalReferences": [reference],
                }
            )
    return found


def write(source: Source, subject: str, lock: str, target: Path) -> Path:
    """Write the bill of an artefact, whose lock is a file of hack/image; its path."""
    parts = components((source.directory / "hack" / "image" / lock).read_text("utf-8"))
    main = {"type": "application", "bom-ref": subject, "name": subject, "version": source.version}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'{commit()} {subject} {source.version}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(source.epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": main,
        },
        "components": parts,
        "dependencies": [{"ref": subject, "dependsOn": [each["bom-ref"] for each in parts]}],
    }
    path = target / f"{subject}-{source.version}.cdx.json"
    path.write_text(json.dumps(bill, indent=1), "utf-8")
    return path
