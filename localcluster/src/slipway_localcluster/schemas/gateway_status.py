"""The status of an HTTPRoute, as the Gateway API publishes it."""

from slipway_localcluster.schemas.gateway_references import PARENT
from slipway_localcluster.schemas.schema import (
    DATE_TIME,
    TEXT,
    Schema,
    choice,
    define_closed,
    list_of,
    number,
    text,
)

_HOST = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_CONDITION = define_closed(
    {
        "lastTransitionTime": Schema(TEXT.types, form=DATE_TIME),
        "message": text(most=32768),
        "observedGeneration": number(0),
        "reason": text(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", least=1, most=1024),
        "status": choice("True", "False", "Unknown"),
        "type": text(rf"^({_HOST}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$", most=316),
    },
    "lastTransitionTime",
    "message",
    "reason",
    "status",
    "type",
)
_CONDITIONS = Schema(
    frozenset({"array"}), items=_CONDITION, min_size=1, max_size=8, list_keys=("type",)
)
_CONTROLLER = text(
    rf"^{_HOST}/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$",
    least=1,
    most=253,
)
_PARENT_STATUS = define_closed(
    {"conditions": _CONDITIONS, "controllerName": _CONTROLLER, "parentRef": PARENT},
    "conditions",
    "controllerName",
    "parentRef",
)
HTTP_ROUTE_STATUS = define_closed({"parents": list_of(_PARENT_STATUS, most=32)}, "parents")
