"""The schema of each kind.

SLIPWAY_CRD_DIR names a folder of published CustomResourceDefinitions for custom kinds. Without it,
or where it lacks a kind, our own schemas state the fields that the portal writes.
"""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from slipway_localcluster.kinds import (
    AUTHORIZATION_POLICY,
    BACKEND_TRAFFIC_POLICY,
    CLUSTER_SERVING_RUNTIME,
    ENVOY_EXTENSION_POLICY,
    HTTP_ROUTE,
    HTTP_ROUTE_FILTER,
    INFERENCE_SERVICE,
    REQUEST_AUTHENTICATION,
    SECURITY_POLICY,
    SERVING_RUNTIME,
    Kind,
)
from slipway_localcluster.schemas import envoy_gateway, gateway, istio, kserve
from slipway_localcluster.schemas.built_in import read_annotation, schema_of_model
from slipway_localcluster.schemas.gateway_status import HTTP_ROUTE_STATUS
from slipway_localcluster.schemas.published import schema_in
from slipway_localcluster.schemas.schema import (
    ANYTHING,
    TEXT,
    Part,
    Schema,
    define_closed,
    define_open,
    list_of,
)
from slipway_localcluster.topology import NATIVE_GROUPS

_PREFIXES = {"": ("V1", "CoreV1"), "autoscaling": ("V2",)}


@functools.cache
def schema_of(kind: Kind) -> Schema:
    """Return the schema of a kind. ANYTHING for a kind without one."""
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
    metadata = read_annotation("V1ObjectMeta")
    fields = {**published.fields, "apiVersion": TEXT, "kind": TEXT, "metadata": metadata}
    return Schema(
        published.types,
        is_open=False,
        required=published.required,
        fields=fields,
        rules=published.rules,
    )


def _own(kind: Kind) -> Schema:
    conditions = define_open(conditions=list_of(define_open(type=TEXT, status=TEXT)), url=TEXT)
    fields = {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": read_annotation("V1ObjectMeta"),
        "spec": _own_spec(kind),
        "status": _OWN_STATUSES.get(kind, conditions) if kind.has_status else define_open(),
    }
    return define_closed(fields)


_OWN_STATUSES: Mapping[Kind, Schema] = {HTTP_ROUTE: HTTP_ROUTE_STATUS}
_OWN_SPECS: Mapping[Kind, Callable[[], Part]] = {
    HTTP_ROUTE: lambda: gateway.HTTP_ROUTE_SPEC,
    SECURITY_POLICY: lambda: envoy_gateway.SECURITY_POLICY_SPEC,
    BACKEND_TRAFFIC_POLICY: lambda: envoy_gateway.BACKEND_TRAFFIC_POLICY_SPEC,
    ENVOY_EXTENSION_POLICY: lambda: envoy_gateway.ENVOY_EXTENSION_POLICY_SPEC,
    HTTP_ROUTE_FILTER: lambda: envoy_gateway.HTTP_ROUTE_FILTER_SPEC,
    REQUEST_AUTHENTICATION: lambda: istio.REQUEST_AUTHENTICATION_SPEC,
    AUTHORIZATION_POLICY: lambda: istio.AUTHORIZATION_POLICY_SPEC,
    INFERENCE_SERVICE: kserve.inference_service_spec,
    SERVING_RUNTIME: kserve.serving_runtime_spec,
    CLUSTER_SERVING_RUNTIME: kserve.serving_runtime_spec,
}


def _own_spec(kind: Kind) -> Part:
    return _OWN_SPECS.get(kind, define_open)()
