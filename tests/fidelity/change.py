"""One row of the table of changes: an object that exists, what is done to it, and the request that is judged."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fidelity.row import Json, Path, Row, set_at

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_MANAGER = {"fieldManager": "slipway"}
_FORCED = {**_MANAGER, "force": "true"}


@dataclass(frozen=True, slots=True)
class Step:
    """`name` of the object in the URL; empty: the collection."""

    method: str
    body: Any = None
    name: str = "fidelity"
    subresource: str = ""
    content_type: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """The last step is judged."""

    name: str
    manifest: Json
    steps: tuple[Step, ...]

    @property
    def collection(self) -> str:
        return Row(self.name, self.manifest).collection


def requests_of(change: Change, namespace: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What comes before, and the judged request, as a dry run: most of what it asks for is refused."""
    *before, judged = change.steps
    dry = {"dryRun": "All", **judged.query}
    return (
        [_request(change, step, namespace) for step in before],
        _request(change, dataclasses.replace(judged, query=dry), namespace),
    )


def clean_up_of(change: Change, namespace: str) -> list[dict[str, Any]]:
    """So that the next change finds no object of its name."""
    free = patch({"metadata": {"finalizers": None}})
    steps = (free, delete(gracePeriodSeconds="0", propagationPolicy="Background"), free)
    return [_request(change, step, namespace) for step in steps]


def _request(change: Change, step: Step, namespace: str) -> dict[str, Any]:
    url = change.collection.format(namespace=namespace)
    url += f"/{step.name}" if step.name else ""
    url += f"/{step.subresource}" if step.subresource else ""
    content = None if step.body is None else json.dumps(step.body)
    headers = {"Content-Type": step.content_type}
    return {
        "method": step.method,
        "url": url,
        "content": content,
        "headers": headers,
        "params": dict(step.query),
    }


def create(manifest: Json, **query: str) -> Step:
    return Step("POST", manifest, name="", query={**_MANAGER, **query})


def apply(manifest: Json, query: Mapping[str, str] = _FORCED, *, subresource: str = "") -> Step:
    return Step("PATCH", manifest, subresource=subresource, content_type=APPLY, query=dict(query))


def replace(manifest: Json, *, subresource: str = "") -> Step:
    return Step("PUT", manifest, subresource=subresource, query=_MANAGER)


def patch(body: Any, content_type: str = MERGE, *, subresource: str = "", **query: str) -> Step:
    return Step(
        "PATCH",
        body,
        subresource=subresource,
        content_type=content_type,
        query={**_MANAGER, **query},
    )


def delete(options: Json | None = None, **query: str) -> Step:
    return Step("DELETE", options, query=query)


class Changes:
    """Collects rows."""

    def __init__(self) -> None:
        self._changes: list[Change] = []

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    def add(self, name: str, manifest: Json, *steps: Step) -> None:
        """Of an object that exists as `manifest`."""
        self._changes.append(Change(name, manifest, (create(manifest), *steps)))

    def alone(self, name: str, manifest: Json, *steps: Step) -> None:
        """Without an object that exists."""
        self._changes.append(Change(name, manifest, steps))

    def applied(self, name: str, manifest: Json, *values: tuple[Path, Any]) -> None:
        """The same object with other values at paths, by forced server-side apply."""
        self.add(name, manifest, apply(with_values(manifest, values)))

    def replaced(self, name: str, manifest: Json, *values: tuple[Path, Any]) -> None:
        """The same by PUT."""
        self.add(name, manifest, replace(with_values(manifest, values)))


def with_values(manifest: Json, values: Sequence[tuple[Path, Any]]) -> Json:
    other = copy.deepcopy(manifest)
    for path, value in values:
        set_at(other, path, value)
    return other
