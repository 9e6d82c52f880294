"""Schemas of custom kinds from CustomResourceDefinitions: structure, limits, defaults and CEL rules.

Rules on changes (`oldSelf`) are left out.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slipway_localcluster.kinds import Kind
from slipway_localcluster.schemas.definitions import read_definition
from slipway_localcluster.schemas.schema import (
    ABSENT,
    DATE_TIME,
    NUMBER_OR_TEXT,
    CelRule,
    Part,
    Schema,
)

_SIZES = ("Length", "Items", "Properties")


def schema_in(folder: Path, kind: Kind) -> Schema | None:
    """Return the schema of a kind from the folder. None if no file there defines the kind in its version."""
    path = folder / f"{kind.plural}.{kind.group}.yaml"
    if not path.exists():
        return None
    for version in read_definition(path)["spec"]["versions"]:
        if version["name"] == kind.version:
            return _schema(version["schema"]["openAPIV3Schema"])
    return None


def _schema(node: Mapping[str, Any]) -> Schema:
    properties = node.get("properties") or {}
    values = node.get("additionalProperties")
    preserves = node.get("x-kubernetes-preserve-unknown-fields", False)
    least, most = (
        [node[f"{edge}{size}"] for size in _SIZES if f"{edge}{size}" in node]
        for edge in ("min", "max")
    )
    return Schema(
        types=_types(node),
        is_open=bool(preserves or values) or not properties,
        required=tuple(node.get("required", ())),
        fields={name: _lazy(child) for name, child in properties.items()},
        values=_lazy(values) if isinstance(values, Mapping) else None,
        items=_lazy(node["items"]) if "items" in node else None,
        enum=tuple(node.get("enum", ())),
        minimum=node.get("minimum"),
        maximum=node.get("maximum"),
        min_size=least[0] if least else 0,
        max_size=most[0] if most else None,
        pattern=re.compile(node["pattern"]) if "pattern" in node else None,
        form=DATE_TIME if node.get("format") == DATE_TIME else "",
        list_keys=tuple(node.get("x-kubernetes-list-map-keys", ())),
        is_set=node.get("x-kubernetes-list-type") == "set",
        default=node.get("default", ABSENT),
        rules=tuple(_rules(node)),
    )


def _lazy(node: Mapping[str, Any]) -> Part:
    return functools.cache(lambda: _schema(node))


def _types(node: Mapping[str, Any]) -> frozenset[str]:
    if node.get("x-kubernetes-int-or-string"):
        return NUMBER_OR_TEXT
    kind = node.get("type")
    if kind is None:
        return frozenset()
    return frozenset({"number", "integer"} if kind == "number" else {kind})


def _rules(node: Mapping[str, Any]) -> Iterator[CelRule]:
    for rule in node.get("x-kubernetes-validations") or ():
        if "oldSelf" not in rule["rule"]:
            message = rule.get("message") or f"failed rule: {rule['rule']}"
            # A word of the language where the rule is written, and none for the runtime here.
            expression = rule["rule"].replace("__namespace__", "namespace")
            yield CelRule(expression, message, rule.get("fieldPath", ""))
