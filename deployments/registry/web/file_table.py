"""The files of a version as a table with a filter."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest

from deployments.models import ModelVersion

_MAX_ROWS: Final = 50


def build_file_table(request: HttpRequest, version: ModelVersion) -> dict[str, Any]:
    """Return the first files whose path contains `?file=`, and how many there are."""
    text = request.GET.get("file", "").strip()[:200]
    total = version.files.count()
    matching = version.files.filter(path__icontains=text) if text else version.files.all()
    return {
        "files": matching[:_MAX_ROWS],
        "file_filter": text,
        "file_count": total,
        "matching_count": matching.count() if text else total,
        "has_file_filter": total > _MAX_ROWS or bool(text),
    }
