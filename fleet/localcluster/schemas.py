"""Field types of every kind: from the kubernetes client's models, and from CRD files.

CRD files are read only when SLIPWAY_CRD_DIR names a folder of them; without it custom resources
may have unknown fields, and only an outline of types is checked besides `validation`.
"""

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import models

from fleet.localcluster.kinds import Kind
from fleet.localcluster.topology import NATIVE_GROUPS

_PREFIXES = {"": ("V1", "CoreV1"), "autoscaling": ("V2",)}
_GENERIC = re.compile(r"^(List|Dict)\[(?:str, )?(.*)\]$")
_SCALARS: Mapping[str, frozenset[str]] = {
    "str": frozenset({"string"}),
    "bytes": frozenset({"string"}),
    "datetime": frozenset({"string"}),
    "int": frozenset({"integer"}),
    "float": frozenset({"number", "integer"}),
    "bool": frozenset({"boolean"}),
}
# Quantities: str in the models, but the API accepts numbers too.
_QUANTITY_MAPS = frozenset(
    {"limits", "requests", "capacity", "allocatable", "hard", "used", "averageValue", "value"}
)
_QUANTITY = frozenset({"string", "number", "integer"})


@dataclass(frozen=True)
class Schema:
    """What one value may be. Empty `types` allows anything; `is_open` allows unknown fields."""

    types: frozenset[str] = frozenset()
    is_open: bool = True
    required: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    values: Any = None
    items: Any = None
    enum: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def property(self, name: str) -> "Schema | None":
        return _resolve(self.fields.get(name))

    def map_value(self) -> "Schema | None":
        return _resolve(self.values)

    def item(self) -> "Schema | None":
        return _resolve(self.items)


ANYTHING = Schema()


def schema_of(kind: Kind) -> Schema:
    """The schema of a kind; ANYTHING for a kind without one."""
    if kind.group in NATIVE_GROUPS:
        for prefix in _PREFIXES.get(kind.group, ("V1",)):
            schema = _native(f"{prefix}{kind.kind}")
            if schema is not None:
                return schema
        return ANYTHING
    folder = os.environ.get("SLIPWAY_CRD_DIR")
    return _custom(folder, kind) if folder else _outline(kind)


@functools.cache
def _native(model_name: str) -> Schema | None:
    model = getattr(models, model_name, None)
    if model is None:
        return None
    names: Mapping[str, str] = model.attribute_map
    fields = {
        names[name]: functools.partial(_from_annotation, names[name], annotation)
        for name, annotation in model.openapi_types.items()
    }
    required = tuple(
        names[name]
        for name, info in model.model_fields.items()
        if name in names and info.is_required()
    )
    return Schema(frozenset({"object"}), is_open=False, required=required, fields=fields)


@functools.cache
def _from_annotation(name: str, annotation: str) -> Schema:
    if name in _QUANTITY_MAPS and annotation in ("str", "Dict[str, str]"):
        quantity = Schema(_QUANTITY)
        return quantity if annotation == "str" else Schema(frozenset({"object"}), values=quantity)
    generic = _GENERIC.match(annotation)
    if generic is not None:
        inner = functools.partial(_from_annotation, "", generic[2])
        if generic[1] == "List":
            return Schema(frozenset({"array"}), items=inner)
        return Schema(frozenset({"object"}), values=inner)
    if annotation in _SCALARS:
        return Schema(_SCALARS[annotation])
    return _native(annotation) or ANYTHING


@functools.cache
def _outline(kind: Kind) -> Schema:
    """Without a CRD: the types that our own rules and the controllers rely on; other fields are open."""
    text = Schema(frozenset({"string"}))
    backends = _list_of(_open(name=text))
    model = _open(modelFormat=_open(name=text), runtime=text, storageUri=text, resources=_open())
    predictor = _open(model=model, containers=_list_of(_open(name=text, resources=_open())))
    spec = _open(
        predictor=predictor,
        containers=_list_of(_open(name=text, resources=_open())),
        rules=_list_of(_open(backendRefs=backends, matches=_list_of(_open()))),
        parentRefs=_list_of(_open()),
        hostnames=_list_of(text),
    )
    metadata = functools.partial(_from_annotation, "metadata", "V1ObjectMeta")
    conditions = _list_of(_open(type=text, status=text))
    root = _open(spec=spec, status=_open(conditions=conditions) if kind.has_status else _open())
    return Schema(root.types, fields={**root.fields, "metadata": metadata})


def _open(**fields: Schema) -> Schema:
    return Schema(frozenset({"object"}), fields=fields)


def _list_of(item: Schema) -> Schema:
    return Schema(frozenset({"array"}), items=item)


@functools.cache
def _custom(folder: str, kind: Kind) -> Schema:
    path = Path(folder) / f"{kind.plural}.{kind.group}.yaml"
    if not path.exists():
        return _outline(kind)
    definition = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    for version in definition["spec"]["versions"]:
        if version["name"] == kind.version:
            root = _from_json(version["schema"]["openAPIV3Schema"])
            metadata = functools.partial(_from_annotation, "metadata", "V1ObjectMeta")
            fields = {**root.fields, "metadata": metadata}
            return Schema(root.types, is_open=False, required=root.required, fields=fields)
    return ANYTHING


def _from_json(node: Mapping[str, Any]) -> Schema:
    properties = node.get("properties") or {}
    values = node.get("additionalProperties")
    preserves = node.get("x-kubernetes-preserve-unknown-fields", False)
    return Schema(
        types=_json_types(node),
        is_open=bool(preserves or values) or not properties,
        required=tuple(node.get("required", ())),
        fields={name: functools.partial(_from_json, child) for name, child in properties.items()},
        values=functools.partial(_from_json, values) if isinstance(values, Mapping) else None,
        items=functools.partial(_from_json, node["items"]) if "items" in node else None,
        enum=tuple(node.get("enum", ())),
        minimum=node.get("minimum"),
        maximum=node.get("maximum"),
    )


def _json_types(node: Mapping[str, Any]) -> frozenset[str]:
    if node.get("x-kubernetes-int-or-string"):
        return _QUANTITY
    kind = node.get("type")
    if kind is None:
        return frozenset()
    return frozenset({"number", "integer"} if kind == "number" else {kind})


def _resolve(lazy: Any) -> Schema | None:
    if lazy is None:
        return None
    resolved: Schema = lazy() if callable(lazy) else lazy
    return resolved
