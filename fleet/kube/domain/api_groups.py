"""API groups as discovery lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sort_versions(group: Mapping[str, Any]) -> list[str]:
    """Return the served versions of a group, the preferred one first."""
    preferred = (group.get("preferredVersion") or {}).get("version")
    versions = [str(item["version"]) for item in group.get("versions") or []]
    return sorted(versions, key=lambda version: version != preferred)
