"""The list of what the production image installs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from portal.management import sbom


def test_it_names_exactly_what_the_lock_pins_with_every_hash() -> None:
    text = sbom.document(datetime(2026, 1, 2, tzinfo=UTC))

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    listed = {
        (one["name"], one["version"]): {part["content"] for part in one["hashes"]}
        for one in document["components"]
    }
    lock = sbom.LOCK.read_text()
    assert len(listed) == len([line for line in lock.splitlines() if line[:1].isalnum()])
    assert sum(map(len, listed.values())) == lock.count("--hash=sha256:")
    assert all(f"{name}=={version}" in lock for name, version in listed)
    django = next(one for one in document["components"] if one["name"] == "django")
    assert django["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert django["purl"] == f"pkg:pypi/django@{django['version']}"


def test_a_package_with_a_marker_keeps_its_version() -> None:
    (package,) = sbom.parse_packages(
        "modelscan==0.8.8 ; python_version < '3.13' \\\n    --hash=sha256:" + "a" * 64 + "\n"
    )

    assert (package.name, package.version, package.digests) == ("modelscan", "0.8.8", ("a" * 64,))
