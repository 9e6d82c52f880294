"""Label and field selectors of list, watch and delete-collection."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slipway_localcluster.errors import BadRequest, JsonObject
from slipway_localcluster.kinds import EVENT, POD, SECRET, Kind

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_COMPARED = re.compile(r"^([^=!<>\s]+)\s*(==|=|!=)\s*([^=!\s]*)$")
_NAME = re.compile(r"^!?\s*[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$")
_ALWAYS = ("metadata.name", "metadata.namespace")
_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    POD: (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
    ),
    EVENT: (
        *(
            f"involvedObject.{field}"
            for field in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        ),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    SECRET: ("type",),
}


@dataclass(frozen=True, slots=True)
class Selector:
    """Label and field requirements of a request; without any it matches everything."""

    label_tests: tuple[Test, ...] = ()
    field_tests: tuple[tuple[str, bool, str], ...] = ()

    def matches(self, obj: JsonObject) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in self.label_tests) and all(
            (_value(obj, path) == value) is is_equal for path, is_equal, value in self.field_tests
        )


def parse(kind: Kind, labels: str, fields: str) -> Selector:
    return Selector(
        tuple(_label_test(part) for part in _split(labels)),
        tuple(_field_test(kind, part) for part in _split(fields)),
    )


def _split(text: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _label_test(part: str) -> Test:
    listed = _SET.match(part)
    if listed is not None:
        values = frozenset(value.strip() for value in listed[3].split(","))
        return _in(listed[1], values, is_included=listed[2] == "in")
    compared = _COMPARED.match(part)
    if compared is not None:
        return _in(compared[1], frozenset({compared[3]}), is_included=compared[2] != "!=")
    if _NAME.match(part) is None:
        raise BadRequest(f"unable to parse requirement: {part}")
    name = part.lstrip("! ")
    is_included = not part.startswith("!")
    return lambda labels: (name in labels) is is_included


def _in(name: str, values: frozenset[str], *, is_included: bool) -> Test:
    """`!=` and `notin` also match objects without the label."""
    return lambda labels: (name in labels and labels[name] in values) is is_included


def _field_test(kind: Kind, part: str) -> tuple[str, bool, str]:
    compared = _COMPARED.match(part)
    if compared is None:
        raise BadRequest(f"invalid field selector: {part}")
    path = compared[1]
    if path not in (*_ALWAYS, *_FIELDS.get(kind, ())):
        raise BadRequest(f'"{path}" is not a known field selector of {kind.resource}')
    return path, compared[2] != "!=", compared[3]


def _value(obj: JsonObject, path: str) -> str:
    value: Any = obj
    if path == "source":
        path = "source.component"
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value)
