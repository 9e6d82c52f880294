"""`make sbom`: write what the production image installs as a CycloneDX 1.6 document.

Names, versions and hashes are those of requirements-image.lock, licences what the packages say of
themselves. The base image's Debian packages are not listed: scan the image for them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

REPOSITORY: Final = Path(__file__).resolve().parents[2]
LOCK: Final = REPOSITORY / "requirements-image.lock"
_PIN: Final = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?P<rest>(?:.*\\\n)+.*)$", re.MULTILINE
)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the bill of materials. `digests`: SHA-256 of each file of the release that may be installed, in
    hexadecimal.
    """

    name: str
    version: str
    digests: tuple[str, ...]


def main() -> None:
    target = REPOSITORY / "var" / "slipway.cdx.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(document(datetime.now(UTC)))
    print(f"Wrote {target.relative_to(REPOSITORY)}.")


def parse_packages(lock: str) -> Iterator[Package]:
    for pin in _PIN.finditer(lock):
        digests = tuple(_HASH.findall(pin["rest"]))
        yield Package(pin["name"], pin["version"], digests)


def document(made_at: datetime) -> str:
    """Return JSON of the schema 1.6. The same packages made at the same time give the same bytes."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    licenses = LicenseFactory()
    slipway = Component(
        type=ComponentType.APPLICATION,
        name=project["name"],
        version=project["version"],
        bom_ref=project["name"],
        licenses=[licenses.make_from_string(project["license"])],
    )
    bom = Bom(components=[_component(one, licenses) for one in parse_packages(LOCK.read_text())])
    bom.metadata.component = slipway
    bom.metadata.timestamp = made_at
    bom.serial_number = uuid5(
        NAMESPACE_URL, f"{slipway.name}=={slipway.version} {LOCK.read_text()}"
    )
    bom.register_dependency(slipway, bom.components)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)


def _component(package: Package, licenses: LicenseFactory) -> Component:
    address = PackageURL("pypi", name=package.name, version=package.version)
    stated = _license(package.name)
    return Component(
        type=ComponentType.LIBRARY,
        name=package.name,
        version=package.version,
        purl=address,
        bom_ref=str(address),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.digests],
        licenses=[licenses.make_from_string(stated)] if stated else [],
    )


def _license(name: str) -> str:
    """Return an SPDX expression, or else the one line that the package says. Empty if it is not installed here."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    (text,) = said.get_all("License-Expression") or said.get_all("License") or [""]
    classifiers = said.get_all("Classifier") or []
    classified = [one for one in classifiers if one.startswith("License ::")]
    is_one_line = bool(text) and "\n" not in text and len(text) < 80
    return text if is_one_line else classified[-1].rpartition(" :: ")[2] if classified else ""


if __name__ == "__main__":
    main()
