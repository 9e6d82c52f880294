"""Schemas of built-in kinds, from the models of the kubernetes client."""

import functools
import re
from collections.abc import Mapping

from kubernetes.client import models

from slipway_localcluster.schemas.schema import ANYTHING, BASE64, NUMBER_OR_TEXT, QUANTITY, Schema

_GENERIC = re.compile(r"^(List|Dict)\[(?:str, )?(.*)\]$")
_SCALARS: Mapping[str, frozenset[str]] = {
    "str": frozenset({"string"}),
    "bytes": frozenset({"string"}),
    "datetime": frozenset({"string"}),
    "int": frozenset({"integer"}),
    "float": frozenset({"number", "integer"}),
    "bool": frozenset({"boolean"}),
}
_AMOUNTS = Schema(NUMBER_OR_TEXT, form=QUANTITY)
_MAP = frozenset({"object"})
# Quantities and bytes are str in the models: the fields of each model that hold them.
_QUANTITIES: Mapping[str, frozenset[str]] = {
    "V1EmptyDirVolumeSource": frozenset({"sizeLimit"}),
    "V1LimitRangeItem": frozenset(
        {"default", "defaultRequest", "max", "maxLimitRequestRatio", "min"}
    ),
    "V1NodeStatus": frozenset({"allocatable", "capacity"}),
    "V1PersistentVolumeClaimStatus": frozenset({"allocatedResources", "capacity"}),
    "V1PodSpec": frozenset({"overhead"}),
    "V1ResourceFieldSelector": frozenset({"divisor"}),
    "V1ResourceQuotaSpec": frozenset({"hard"}),
    "V1ResourceQuotaStatus": frozenset({"hard", "used"}),
    "V1ResourceRequirements": frozenset({"limits", "requests"}),
    "V1VolumeResourceRequirements": frozenset({"limits", "requests"}),
    "V2MetricTarget": frozenset({"averageValue", "value"}),
    "V2MetricValueStatus": frozenset({"averageValue", "value"}),
}
_BYTES: Mapping[str, frozenset[str]] = {
    "V1ConfigMap": frozenset({"binaryData"}),
    "V1Secret": frozenset({"data"}),
}


@functools.cache
def schema_of_model(model_name: str) -> Schema | None:
    """Return the schema of one of the client's models. None for a name that the client does not know."""
    model = getattr(models, model_name, None)
    if model is None:
        return None
    names: Mapping[str, str] = model.attribute_map
    fields = {
        names[name]: functools.partial(_of_field, model_name, names[name], annotation)
        for name, annotation in model.openapi_types.items()
    }
    required = tuple(
        names[name]
        for name, info in model.model_fields.items()
        if name in names and info.is_required()
    )
    return Schema(_MAP, is_open=False, required=required, fields=fields)


@functools.cache
def _of_field(model_name: str, name: str, annotation: str) -> Schema:
    if name in _QUANTITIES.get(model_name, ()):
        return _AMOUNTS if annotation == "str" else Schema(_MAP, values=_AMOUNTS)
    if name in _BYTES.get(model_name, ()):
        return Schema(_MAP, values=Schema(_SCALARS["str"], form=BASE64))
    return read_annotation(annotation)


@functools.cache
def read_annotation(annotation: str) -> Schema:
    """Return the schema of a type that a model states, such as `List[V1Container]`."""
    generic = _GENERIC.match(annotation)
    if generic is not None:
        inner = functools.partial(read_annotation, generic[2])
        if generic[1] == "List":
            return Schema(frozenset({"array"}), items=inner)
        return Schema(_MAP, values=inner)
    if annotation in _SCALARS:
        return Schema(_SCALARS[annotation])
    return schema_of_model(annotation) or ANYTHING
