"""Compare one object on a cluster with its manifest for people: its state, what differs, and who changed it last.

What counts as an edit is what drift detection counts (`edits`), so that a page and the reconciler agree.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from deployments.delivery.domain import edits
from deployments.delivery.domain.edits import ABSENT, Edit, FieldDifference, Step
from deployments.manifests.domain import diff as manifest_diff
from deployments.manifests.domain import metadata
from deployments.manifests.domain.diff import DiffLine
from deployments.manifests.domain.metadata import DIGEST_ANNOTATION, Manifest, to_yaml
from fleet.observation.domain.parse import parse_time


class ObjectState(StrEnum):
    """The state of an object next to its manifest, as pages name it."""

    IN_SYNC = "in sync"
    # The portal has still to write it.
    NOT_APPLIED = "not applied yet"
    DRIFTED = "drifted"
    MISSING = "missing"
    # An object of this name belongs to another installation.
    NOT_OURS = "not ours"
    # Absent, as it should be while the deployment is stopped.
    STOPPED = "stopped"
    BEING_REMOVED = "being removed"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class LastChange:
    """Who wrote an object last, by its managedFields. Writes of its status do not count."""

    manager: str
    at: datetime | None

    @property
    def is_own(self) -> bool:
        return self.manager == edits.FIELD_MANAGER


@dataclass(frozen=True, slots=True)
class ObjectComparison:
    """An object next to its manifest. `edits` are the drifted fields; `diff` leads from the desired to the live
    object and marks nothing else.
    """

    state: ObjectState
    edits: Sequence[Edit] = ()
    diff: Sequence[DiffLine] = ()
    last_change: LastChange | None = None


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Whether the portal has written all that it wants. `is_current` is set once the cluster was observed after the last change of
    the desired state; `is_removed` while nothing of the deployment should run. Through Git (`is_direct` false) an
    operator writes, so whoever owns a field may be the one that has still to write it.
    """

    is_current: bool = True
    is_removed: bool = False
    is_direct: bool = True


def compare_object(
    desired: Manifest, live: Mapping[str, Any] | None, status: ApplyStatus
) -> ObjectComparison:
    # Shared objects of the namespace stay.
    is_removed = status.is_removed and metadata.is_of_deployment(desired)
    if live is None:
        return _compare_absent(desired, is_current=status.is_current, is_removed=is_removed)
    last_change = find_last_change(live)
    if is_removed:
        return ObjectComparison(ObjectState.BEING_REMOVED, last_change=last_change)
    differences = edits.list_differences(desired, live)
    drifted = [item for item in differences if not _is_to_be_applied(item, status)]
    is_unapplied = bool(differences) and not drifted and not status.is_current
    if is_unapplied or _has_other_digest(desired, live):
        # The push that follows replaces edits too.
        diff = _diff_of(desired, manifest_diff.project(live, desired))
        return ObjectComparison(ObjectState.NOT_APPLIED, (), diff, last_change)
    if not drifted:
        return ObjectComparison(ObjectState.IN_SYNC, last_change=last_change)
    found = [item.to_edit(desired["kind"], desired["metadata"]["name"]) for item in drifted]
    diff = _diff_of(desired, _copy_with(desired, drifted))
    return ObjectComparison(ObjectState.DRIFTED, found, diff, last_change)


def _compare_absent(desired: Manifest, *, is_current: bool, is_removed: bool) -> ObjectComparison:
    if is_removed:
        return ObjectComparison(ObjectState.STOPPED)
    if not is_current:
        return ObjectComparison(ObjectState.NOT_APPLIED)
    return ObjectComparison(ObjectState.MISSING, edits.find_edits(desired, None))


def find_last_change(live: Mapping[str, Any]) -> LastChange | None:
    """Return the last write of an object. None if the cluster does not report who wrote it."""
    entries = [
        entry
        for entry in live["metadata"].get("managedFields") or []
        if not entry.get("subresource") and set(entry.get("fieldsV1") or {}) != {"f:status"}
    ]
    # Times are whole seconds. A write of the portal takes its fields back, so an edit that is left came after it.
    last = max(
        entries,
        key=lambda entry: (
            str(entry.get("time") or ""),
            entry.get("manager") != edits.FIELD_MANAGER,
        ),
        default=None,
    )
    if last is None:
        return None
    return LastChange(str(last.get("manager", "")), parse_time(last.get("time")))


def recall(manifest: Manifest, pending: Iterable[Edit]) -> ObjectComparison:
    """Return the comparison of an object whose cluster does not answer: the edits that the last check found, else not
    known.
    """
    key = (manifest["kind"], manifest["metadata"]["name"])
    found = [edit for edit in pending if (edit.kind, edit.name) == key]
    if not found:
        return ObjectComparison(ObjectState.UNKNOWN)
    is_missing = any(not edit.path for edit in found)
    return ObjectComparison(ObjectState.MISSING if is_missing else ObjectState.DRIFTED, found)


def _is_to_be_applied(difference: FieldDifference, status: ApplyStatus) -> bool:
    """Whether the portal or its operator still writes the field, or wrote it and something changed it on its way."""
    if difference.is_own:
        return True
    return not status.is_current and (difference.owner is None or not status.is_direct)


def _has_other_digest(desired: Manifest, live: Mapping[str, Any]) -> bool:
    """Whether it is a workload that another revision of its manifests was written to."""
    digest = (desired["metadata"].get("annotations") or {}).get(DIGEST_ANNOTATION)
    live_digest = (live["metadata"].get("annotations") or {}).get(DIGEST_ANNOTATION)
    return digest is not None and digest != live_digest


def _diff_of(desired: Manifest, live: Any) -> list[DiffLine]:
    return manifest_diff.diff_lines(to_yaml([desired]), to_yaml([live]))


def _copy_with(desired: Manifest, differences: Iterable[FieldDifference]) -> Manifest:
    """Copy the manifest with these fields as they are live."""
    changed = copy.deepcopy(dict(desired))
    for difference in differences:
        *parents, last = difference.path
        parent: Any = changed
        for step in parents:
            parent = parent[_key(parent, step)]
        if difference.live is ABSENT:
            del parent[_key(parent, last)]
        else:
            live = manifest_diff.project(difference.live, difference.desired)
            parent[_key(parent, last)] = copy.deepcopy(live)
    return changed


def _key(parent: Any, step: Step) -> str | int:
    """Return the key of a step in its parent: a name, or the place in a list."""
    if isinstance(step, str):
        return step
    field, value = step
    if not field:
        return int(value)
    return next(index for index, item in enumerate(parent) if item[field] == value)
