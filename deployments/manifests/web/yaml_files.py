"""Manifests for display on pages."""

from __future__ import annotations

from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class ManifestText:
    text: str
    count: int
    kinds: str


def manifests_of_text(text: str) -> ManifestText | None:
    """Prepare manifests for a page. `text` is YAML documents that the portal itself wrote. None if it is empty."""
    if not text:
        return None
    kinds = [
        document["kind"] for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document
    ]
    return ManifestText(text=text, count=len(kinds), kinds=", ".join(kinds))
