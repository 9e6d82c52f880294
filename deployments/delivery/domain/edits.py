"""What others changed in an object that the portal wrote: live against wanted, with who and when.

A value counts as edited when it differs from what would be applied and the portal no longer owns
it. What a webhook or the server rewrote within the portal's own request still belongs to the
portal: applying again would change nothing, for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Final

from deployments.manifests.domain.metadata import DIGEST_ANNOTATION, Manifest

MANAGER: Final = "slipway"
_LONGEST_VALUE = 200
_ABSENT: Final = object()
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
    """`live` empty: removed. `by` is the field manager, empty when the cluster does not tell."""

    kind: str
    name: str
    path: str
    wanted: str
    live: str
    by: str = ""
    at: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @property
    def words(self) -> str:
        if not self.path:
            return f"{self.kind} {self.name} was deleted"
        who = f"{self.by} changed" if self.by else "someone changed"
        what = f"from {self.wanted} to {self.live}" if self.live else f"(removed {self.wanted})"
        return f"{who} {self.path} of {self.kind} {self.name} {what}"


def find(wanted: Manifest, live: Mapping[str, Any] | None) -> list[Edit]:
    """Empty when the object is as it was applied."""
    kind, name = wanted["kind"], wanted["metadata"]["name"]
    if live is None:
        return [Edit(kind, name, "", "", "")]
    owners = _owners(live)
    found = []
    for path, should, is_now in _differences(wanted, live, ()):
        if path[0] in ("apiVersion", "kind", "status") or path[-1] == DIGEST_ANNOTATION:
            continue
        owner = _owner_of(owners, path)
        if owner is None or owner["manager"] != MANAGER:
            found.append(
                Edit(
                    kind,
                    name,
                    text_of(path),
                    _short(should),
                    "" if is_now is _ABSENT else _short(is_now),
                    by=owner["manager"] if owner else "",
                    at=owner.get("time", "") if owner else "",
                )
            )
    return found


def text_of(path: Sequence[Step]) -> str:
    """spec.containers[server].resources.limits[nvidia.com/gpu]"""
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
    wanted: Any, live: Any, path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Any, Any]]:
    """Only where `wanted` says something; what the cluster filled in by itself is left out."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        for key, value in wanted.items():
            yield from _differences(value, live.get(key, _ABSENT), (*path, key))
    elif _is_list(wanted) and _is_list(live):
        yield from _list_differences(wanted, live, path)
    elif not _is_equal(wanted, live):
        yield path, wanted, live


def _list_differences(
    wanted: Sequence[Any], live: Sequence[Any], path: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Any, Any]]:
    """Named things are matched by name: what others added beside them stays theirs."""
    named = next(
        (key for key in ("name", "containerPort") if all(_has(item, key) for item in wanted)), None
    )
    if named and wanted and path[-1] not in ("backendRefs", "parentRefs"):
        twins = {item[named]: item for item in live if _has(item, named)}
        for item in wanted:
            step = (named, item[named])
            yield from _differences(item, twins.get(item[named], _ABSENT), (*path, step))
    elif len(wanted) != len(live):
        yield path, wanted, live
    else:
        for index, (one, other) in enumerate(zip(wanted, live, strict=True)):
            yield from _differences(one, other, (*path, ("", index)))


def _has(item: Any, key: str) -> bool:
    return isinstance(item, Mapping) and key in item


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_equal(wanted: Any, live: Any) -> bool:
    """An empty value may be left out by the server, and a quantity written in another way."""
    if live is _ABSENT:
        return wanted in ("", None) or (not isinstance(wanted, bool | int) and not wanted)
    if wanted == live or str(wanted) == str(live):
        return True
    one, other = _amount(wanted), _amount(live)
    return one is not None and one == other


def _amount(value: Any) -> Decimal | None:
    found = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int) else None
    if found is None or isinstance(value, bool):
        return None
    return Decimal(found[1]) * _UNITS.get(found[2] or "", Decimal(1))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _owners(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The portal's own entry first: what it owns together with others is still its own."""
    found = live["metadata"].get("managedFields") or []
    return sorted(found, key=lambda one: one.get("manager") != MANAGER)


def _owner_of(
    owners: Sequence[Mapping[str, Any]], path: Sequence[Step]
) -> Mapping[str, Any] | None:
    return next((one for one in owners if _owns(one.get("fieldsV1") or {}, path)), None)


def _owns(fields: Mapping[str, Any], path: Sequence[Step]) -> bool:
    """A list that is replaced as a whole is owned by its own field; its items have no entries."""
    here = fields
    for step in path:
        if not here:
            return True
        inside = here.get(f"f:{step}") if isinstance(step, str) else _item(here, step)
        if inside is None:
            return False
        here = inside
    return True


def _item(fields: Mapping[str, Any], step: tuple[str, Any]) -> Mapping[str, Any] | None:
    for key, inside in fields.items():
        if key.startswith("k:") and json.loads(key[2:]).get(step[0]) == step[1]:
            found: Mapping[str, Any] = inside
            return found
    return None
