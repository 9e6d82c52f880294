"""Schemas of Envoy Gateway's policies, as far as this cluster enforces them: API keys and JWTs of an HTTPRoute,
local rate limits by headers, bodies that are read as a whole, scripts in Lua, and credentials that a route adds.

From the reference of Envoy Gateway 1.9. With SLIPWAY_CRD_DIR the published one is used.
"""

from slipway_localcluster.schemas.schema import (
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
_DURATION = text(r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
_NAMESPACE = text(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", least=1, most=63)
_SECRET = closed(
    {"group": choice(""), "kind": choice("Secret"), "name": _NAME, "namespace": _NAMESPACE}, "name"
)
_HAS_TARGET = Rule("has(self.targetRefs)", "either targetRef or targetRefs must be used")
_SOURCE = closed(
    {"headers": list_of(text(least=1), least=1)},
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
        "extractFrom": list_of(_SOURCE, least=1),
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
        "remoteJWKS": closed({"uri": _NAME, "cacheDuration": _DURATION}, "uri"),
        "extractFrom": closed({"headers": list_of(_JWT_HEADER)}),
        "claimToHeaders": list_of(closed({"header": TEXT, "claim": TEXT}, "header", "claim")),
    },
    "name",
    rules=(Rule("has(self.remoteJWKS)", "either remoteJWKS or localJWKS must be specified."),),
)
_CLAIM = closed(
    {
        "name": _NAME,
        "valueType": choice("String", "StringArray", default="String"),
        # Envoy Gateway 1.5 takes 16.
        "values": list_of(TEXT, least=1, most=128),
    },
    "name",
    "values",
)
_PRINCIPAL = closed(
    {
        "jwt": closed(
            {"provider": _NAME, "claims": list_of(_CLAIM, least=1, most=16)},
            "provider",
            rules=(Rule("has(self.claims)", "at least one of claims or scopes must be specified"),),
        )
    },
    rules=(
        Rule(
            "has(self.jwt)",
            "at least one of clientCIDRs, jwt, headers, or clientIPGeoLocations must be specified",
        ),
    ),
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
        "jwt": closed({"providers": list_of(_PROVIDER, least=1, most=16)}, "providers"),
        "authorization": closed(
            {"defaultAction": choice("Allow", "Deny"), "rules": list_of(_AUTHORIZATION_RULE)}
        ),
    },
    rules=(
        _HAS_TARGET,
        Rule(
            "has(self.jwt) || !has(self.authorization) || !has(self.authorization.rules)"
            " || !self.authorization.rules.exists(r, has(r.principal.jwt))",
            "if authorization.rules.principal.jwt is used, jwt must be defined",
        ),
    ),
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
        "clientSelectors": list_of(
            closed({"headers": list_of(_HEADER, most=128)}, "headers"), most=8
        ),
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
            {
                "type": choice("Local"),
                "local": closed({"rules": list_of(_RATE_LIMIT_RULE, most=16)}),
            },
            "type",
        ),
        "requestBuffer": closed({"limit": Schema(NUMBER_OR_TEXT, form=QUANTITY)}, "limit"),
    },
    rules=(_HAS_TARGET,),
)
_LUA = closed({"type": choice("Inline"), "inline": TEXT}, "type", "inline")
ENVOY_EXTENSION_POLICY_SPEC = closed(
    {"targetRefs": list_of(_TARGET), "lua": list_of(_LUA, most=16)}, rules=(_HAS_TARGET,)
)
HTTP_ROUTE_FILTER_SPEC = closed(
    {
        "credentialInjection": closed(
            {
                "header": TEXT,
                "overwrite": BOOLEAN,
                "credential": closed({"valueRef": _SECRET}, "valueRef"),
            },
            "credential",
        )
    }
)
