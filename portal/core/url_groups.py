"""Addresses in groups by their first segment, so that a request is compared with those of one resource only."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import URLPattern, URLResolver, include, path


def by_first_segment(patterns: Sequence[URLPattern]) -> list[URLPattern | URLResolver]:
    """The same addresses with the same routes and names. Django tries one pattern after the other."""
    groups: dict[str, list[URLPattern]] = {}
    alone: list[URLPattern | URLResolver] = []
    for pattern in patterns:
        first, slash, rest = str(pattern.pattern).partition("/")
        if not slash or "<" in first:
            alone.append(pattern)
            continue
        inner = path(rest, pattern.callback, pattern.default_args, pattern.name)
        groups.setdefault(f"{first}/", []).append(inner)
    return [*(path(prefix, include(group)) for prefix, group in groups.items()), *alone]
