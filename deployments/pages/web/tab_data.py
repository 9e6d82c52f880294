"""Contexts of the Revisions and Timeline tabs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.core.paginator import Paginator

from deployments.delivery.services import live_objects
from deployments.manifests.domain import diff as manifest_diff
from deployments.manifests.domain.metadata import to_yaml
from deployments.models import Deployment, Revision
from deployments.serving.domain.event_meanings import EventTopic
from deployments.serving.selectors import deployments, revision_roles, timeline
from deployments.serving.selectors.revision_roles import RevisionRole
from deployments.serving.web import events
from deployments.spec.domain import field_values

_PAGE_SIZE = 50
_TOPICS: Final = tuple((topic.value, topic.value.capitalize()) for topic in EventTopic)


@dataclass(frozen=True, slots=True)
class HistoryRow:
    revision: Revision
    engine: str
    role: RevisionRole


def revisions_context(deployment: Deployment, *, before: str, after: str) -> dict[str, Any]:
    """Compare the two selected revisions, by default the two newest."""
    history = deployments.history_of(deployment)
    by_number = {str(revision.number): revision for revision in history}
    right = by_number.get(after) or (history[0] if history else None)
    left = by_number.get(before) or (history[1] if len(history) > 1 else None)
    roles = revision_roles.roles_of(deployment)
    rows = [_history_row(revision, roles[revision.pk]) for revision in history]
    if left is None or right is None:
        return {"history": rows, "before": None, "after": None}
    diff = manifest_diff.diff_lines(text_of(left), text_of(right))
    changed = sum(line.kind in ("added", "removed") for line in diff)
    return {
        "history": rows,
        "before": left,
        "after": right,
        "diff": diff,
        "changed_lines": changed,
    }


def _history_row(revision: Revision, role: RevisionRole) -> HistoryRow:
    engine = field_values.describe_value("engine", revision.spec["engine"])
    return HistoryRow(revision, engine, role)


def text_of(revision: Revision) -> str:
    """Return the version and spec of a revision as YAML."""
    version = revision.version
    return to_yaml(
        [
            {
                "version": {
                    "label": version.label,
                    "sha256": version.sha256,
                    "repository": version.storage_uri,
                },
                "metadata": version.metadata,
                "spec": revision.spec,
            }
        ]
    )


def timeline_context(deployment: Deployment, *, page: str, kind: str) -> dict[str, Any]:
    topic = events.read_topic(kind)
    rows = Paginator(timeline.list_events(deployment, topic=topic), _PAGE_SIZE).get_page(page)
    # What a filter leaves out is on no page.
    is_last_page = topic is not None or not rows.has_next()
    return {
        "page": rows,
        "entries": events.build_entries(deployment, list(rows), is_last_page=is_last_page),
        "topic": topic,
        "topics": _TOPICS,
        "pods": live_objects.pods_of(deployment),
    }
