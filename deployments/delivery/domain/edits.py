"""Compare a live object with the manifest that the portal applied, and name who changed what.

A field counts as edited when its value differs from the manifest and the portal no longer owns it.
A value that a webhook or the server rewrote within the portal's own request is still owned by the
portal: applying it again would change nothing, for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final

from deployments.manifests.domain.diff import is_list
from deployments.manifests.domain.metadata import DIGEST_ANNOTATION, Manifest

FIELD_MANAGER: Final = "slipway"
_MAX_VALUE_LENGTH = 200
# The live value of a field that was removed.
ABSENT: Final = object()
_UNITS: Final = {
    "m": Decimal("0.001"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
# A step into an object: a field, or the item of a list that has this name.
Step = str | tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Edit:
    """A field that differs. `live` is empty if the field was removed, `path` if the object was deleted.

    `by` is the field manager, empty if the cluster does not report one.
    """

    kind: str
    name: str
    path: str
    desired: str
    live: str
    by: str = ""
    at: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @property
    def description(self) -> str:
        if not self.path:
            return f"{self.kind} {self.name} was deleted"
        who = f"{self.by} changed" if self.by else "someone changed"
        change = f"from {self.desired} to {self.live}" if self.live else f"(removed {self.desired})"
        return f"{who} {self.path} of {self.kind} {self.name} {change}"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field of a manifest whose live value differs. `live` is ABSENT if the field was removed; `owner` is the entry
    of managedFields that owns it, None if none does.
    """

    path: tuple[Step, ...]
    desired: Any
    live: Any
    owner: Mapping[str, Any] | None

    @property
    def is_own(self) -> bool:
        """Whether the portal owns the field, so that nobody else changed it."""
        return self.owner is not None and self.owner["manager"] == FIELD_MANAGER

    def to_edit(self, kind: str, name: str) -> Edit:
        owner = self.owner or {}
        return Edit(
            kind,
            name,
            format_path(self.path),
            _shorten(self.desired),
            "" if self.live is ABSENT else _shorten(self.live),
            by=owner.get("manager", ""),
            at=owner.get("time", ""),
        )


def find_edits(desired: Manifest, live: Mapping[str, Any] | None) -> list[Edit]:
    """Return the edits of a live object. Empty if it is as it was applied."""
    kind, name = desired["kind"], desired["metadata"]["name"]
    if live is None:
        return [Edit(kind, name, "", "", "")]
    differences = list_differences(desired, live)
    return [item.to_edit(kind, name) for item in differences if not item.is_own]


def list_differences(desired: Manifest, live: Mapping[str, Any]) -> list[FieldDifference]:
    """List the fields that differ from the manifest, whoever owns them, without its digest."""
    owners = _owners(live)
    return [
        FieldDifference(path, value, live_value, _owner_of(owners, path))
        for path, value, live_value in _differences(desired, live, ())
        if path[0] not in ("apiVersion", "kind", "status") and path[-1] != DIGEST_ANNOTATION
    ]


def format_path(path: Sequence[Step]) -> str:
    """Format a path: spec.containers[server].resources.limits[nvidia.com/gpu]."""
    text = ""
    for step in path:
        if isinstance(step, tuple):
            text += f"[{step[1]}]"
        elif "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _differences(
    desired: Any, live: Any, path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Any, Any]]:
    """Compare only the fields that `desired` sets; defaults that the cluster filled in are ignored."""
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        for key, value in desired.items():
            yield from _differences(value, live.get(key, ABSENT), (*path, key))
    elif is_list(desired) and is_list(live):
        yield from _list_differences(desired, live, path)
    elif not _is_equal(desired, live):
        yield path, desired, live


def _list_differences(
    desired: Sequence[Any], live: Sequence[Any], path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Any, Any]]:
    """Match named items by name, so that items which others added are ignored."""
    key_field = next(
        (key for key in ("name", "containerPort") if all(_has(item, key) for item in desired)), None
    )
    if key_field and desired and path[-1] not in ("backendRefs", "parentRefs"):
        live_by_key = {item[key_field]: item for item in live if _has(item, key_field)}
        for item in desired:
            step = (key_field, item[key_field])
            match = live_by_key.get(item[key_field], ABSENT)
            yield from _differences(item, match, (*path, step))
    elif len(desired) != len(live):
        yield path, desired, live
    else:
        for index, (item, live_item) in enumerate(zip(desired, live, strict=True)):
            yield from _differences(item, live_item, (*path, ("", index)))


def _has(item: Any, key: str) -> bool:
    return isinstance(item, Mapping) and key in item


def _is_equal(desired: Any, live: Any) -> bool:
    """Whether both values are equal. The server may leave out an empty value, and write a quantity in another unit."""
    if live is ABSENT:
        return desired in ("", None) or (not isinstance(desired, bool | int) and not desired)
    if desired == live or str(desired) == str(live):
        return True
    amount = _parse_quantity(desired)
    return amount is not None and amount == _parse_quantity(live)


def _parse_quantity(value: Any) -> Decimal | None:
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match is None or isinstance(value, bool):
        return None
    return Decimal(match[1]) * _UNITS.get(match[2] or "", Decimal(1))


def _shorten(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def _owners(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the owners, the portal's own entry first: a field that it shares with others still counts as its own."""
    entries = live["metadata"].get("managedFields") or []
    return sorted(entries, key=lambda entry: entry.get("manager") != FIELD_MANAGER)


def _owner_of(
    owners: Sequence[Mapping[str, Any]], path: Sequence[Step]
) -> Mapping[str, Any] | None:
    return next((entry for entry in owners if _owns(entry.get("fieldsV1") or {}, path)), None)


def _owns(fields: Mapping[str, Any], path: Sequence[Step]) -> bool:
    """Whether the owner owns the path. An atomic list is owned through its own field; its items have no entries."""
    current = fields
    for step in path:
        if not current:
            return True
        child = current.get(f"f:{step}") if isinstance(step, str) else _list_item(current, step)
        if child is None:
            return False
        current = child
    return True


def _list_item(fields: Mapping[str, Any], step: tuple[str, Any]) -> Mapping[str, Any] | None:
    for key, child in fields.items():
        if key.startswith("k:") and json.loads(key[2:]).get(step[0]) == step[1]:
            item: Mapping[str, Any] = child
            return item
    return None
