"""The schema of each kind.

SLIPWAY_CRD_DIR names a folder of published CustomResourceDefinitions for custom kinds. Without it,
or where it lacks a kind, our own schemas state the fields that the portal writes.
"""

import functools
import os
from pathlib import Path

from fleet.localcluster.kinds import (
    BACKEND_TRAFFIC_POLICY,
    CLUSTER_SERVING_RUNTIME,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    SECURITY_POLICY,
    SERVING_RUNTIME,
    Kind,
)
from fleet.localcluster.schemas import envoy_gateway, gateway, kserve
from fleet.localcluster.schemas.built_in import of_annotation, schema_of_model
from fleet.localcluster.schemas.published import schema_in
from fleet.localcluster.schemas.schema import ANYTHING, TEXT, Schema, closed, list_of, opened
from fleet.localcluster.topology import NATIVE_GROUPS

_PREFIXES = {"": ("V1", "CoreV1"), "autoscaling": ("V2",)}


@functools.cache
def schema_of(kind: Kind) -> Schema:
    """ANYTHING for a kind without one."""
    if kind.group in NATIVE_GROUPS:
        for prefix in _PREFIXES.get(kind.group, ("V1",)):
            schema = schema_of_model(f"{prefix}{kind.kind}")
            if schema is not None:
                return schema
        return ANYTHING
    named = os.environ.get("SLIPWAY_CRD_DIR")
    published = schema_in(Path(named), kind) if named else None
    if published is None:
        return _own(kind)
    metadata = of_annotation("V1ObjectMeta")
    fields = {**published.fields, "apiVersion": TEXT, "kind": TEXT, "metadata": metadata}
    return Schema(
        published.types,
        is_open=False,
        required=published.required,
        fields=fields,
        rules=published.rules,
    )


def _own(kind: Kind) -> Schema:
    conditions = opened(conditions=list_of(opened(type=TEXT, status=TEXT)))
    fields = {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": of_annotation("V1ObjectMeta"),
        "spec": _own_spec(kind),
        "status": conditions if kind.has_status else opened(),
    }
    return closed(fields)


def _own_spec(kind: Kind) -> Schema:
    if kind is HTTP_ROUTE:
        return gateway.HTTP_ROUTE_SPEC
    if kind is SECURITY_POLICY:
        return envoy_gateway.SECURITY_POLICY_SPEC
    if kind is BACKEND_TRAFFIC_POLICY:
        return envoy_gateway.BACKEND_TRAFFIC_POLICY_SPEC
    if kind is INFERENCE_SERVICE:
        return kserve.inference_service_spec()
    if kind in (SERVING_RUNTIME, CLUSTER_SERVING_RUNTIME):
        return kserve.serving_runtime_spec()
    return opened()
