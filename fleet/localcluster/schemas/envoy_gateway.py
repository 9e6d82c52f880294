"""Schemas of Envoy Gateway's policies, as far as this cluster enforces them: API keys and JWTs of an HTTPRoute,
local rate limits by headers, bodies that are read as a whole, and scripts in Lua.

From the reference of Envoy Gateway 1.9. With SLIPWAY_CRD_DIR the published one is used.
"""

from fleet.localcluster.schemas.schema import (
    BOOLEAN,
    NUMBER_OR_TEXT,
    QUANTITY,
    TEXT,
    Rule,
    Schema,
    choice,
    closed,
    list_of,
    number,
    text,
)

_NAME = text(least=1, most=253)
_SECRET = closed(
    {"group": choice(""), "kind": choice("Secret"), "name": _NAME, "namespace": TEXT}, "name"
)
_SOURCE = closed(
    {"headers": list_of(text(least=1))},
    rules=(
        Rule(
            "has(self.headers)",
            "exactly one of headers, params, or cookies must be specified",
        ),
    ),
)
_API_KEY_AUTH = closed(
    {
        "credentialRefs": list_of(_SECRET),
        "extractFrom": list_of(_SOURCE),
        "forwardClientIDHeader": TEXT,
        "sanitize": BOOLEAN,
    },
    "credentialRefs",
    "extractFrom",
)
_TARGET = closed(
    {"group": choice("gateway.networking.k8s.io"), "kind": choice("HTTPRoute"), "name": _NAME},
    "group",
    "kind",
    "name",
)
_JWT_HEADER = closed({"name": TEXT, "valuePrefix": TEXT}, "name")
_PROVIDER = closed(
    {
        "name": _NAME,
        "issuer": text(most=253),
        "audiences": list_of(TEXT, most=8),
        "remoteJWKS": closed({"uri": _NAME, "cacheDuration": TEXT}, "uri"),
        "extractFrom": closed({"headers": list_of(_JWT_HEADER)}),
        "claimToHeaders": list_of(closed({"header": TEXT, "claim": TEXT}, "header", "claim")),
    },
    "name",
)
_CLAIM = closed(
    {
        "name": _NAME,
        "valueType": choice("String", "StringArray", default="String"),
        "values": list_of(TEXT, most=128),
    },
    "name",
    "values",
)
_PRINCIPAL = closed(
    {"jwt": closed({"provider": _NAME, "claims": list_of(_CLAIM, most=16)}, "provider")}
)
_AUTHORIZATION_RULE = closed(
    {"name": _NAME, "action": choice("Allow", "Deny"), "principal": _PRINCIPAL},
    "action",
    "principal",
)
SECURITY_POLICY_SPEC = closed(
    {
        "targetRefs": list_of(_TARGET),
        "apiKeyAuth": _API_KEY_AUTH,
        "jwt": closed({"providers": list_of(_PROVIDER, most=16)}, "providers"),
        "authorization": closed(
            {"defaultAction": choice("Allow", "Deny"), "rules": list_of(_AUTHORIZATION_RULE)}
        ),
    }
)

_HEADER = closed(
    {
        "name": text(least=1, most=256),
        "type": choice("Exact", "RegularExpression", "Distinct", default="Exact"),
        "value": text(most=1024),
        "invert": Schema(BOOLEAN.types, enum=(False,), default=False),
    },
    "name",
)
_RATE_LIMIT_RULE = closed(
    {
        "clientSelectors": list_of(closed({"headers": list_of(_HEADER)}, "headers"), most=8),
        "limit": closed(
            {
                "requests": number(0, 2**32 - 1),
                "unit": choice("Second", "Minute", "Hour", "Day"),
            },
            "requests",
            "unit",
        ),
    },
    "clientSelectors",
    "limit",
)
BACKEND_TRAFFIC_POLICY_SPEC = closed(
    {
        "targetRefs": list_of(_TARGET),
        "mergeType": choice("StrategicMerge", "JSONMerge"),
        "rateLimit": closed(
            {"type": choice("Local"), "local": closed({"rules": list_of(_RATE_LIMIT_RULE)})},
            "type",
        ),
        "requestBuffer": closed({"limit": Schema(NUMBER_OR_TEXT, form=QUANTITY)}, "limit"),
    }
)
_LUA = closed({"type": choice("Inline"), "inline": TEXT}, "type", "inline")
ENVOY_EXTENSION_POLICY_SPEC = closed(
    {"targetRefs": list_of(_TARGET), "lua": list_of(_LUA, most=16)}
)
