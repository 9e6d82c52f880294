"""Describe what a roll back changes, in the few words that fit on its button."""

from __future__ import annotations

from deployments.models import Revision
from deployments.spec.domain import field_values


def describe_changes(now: Revision, previous: Revision) -> str:
    """Describe the way back: the revision, its version, and how many settings differ besides."""
    text = f"to r{previous.number}, {previous.version.label}"
    fields, earlier = field_values.flatten(now.spec), field_values.flatten(previous.spec)
    count = sum(fields.get(name) != earlier.get(name) for name in fields.keys() | earlier.keys())
    return f"{text} and {count} setting{'' if count == 1 else 's'}" if count else text
