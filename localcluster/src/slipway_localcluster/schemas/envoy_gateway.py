"""Schemas of Envoy Gateway's policies, as far as this cluster enforces them: API keys and JWTs of an HTTPRoute,
local rate limits by headers, bodies that are read as a whole, scripts in Lua, and credentials that a route adds.

From the reference of Envoy Gateway 1.9. With SLIPWAY_CRD_DIR the published one is used.
"""

from slipway_localcluster.schemas.schema import (
    BOOLEAN,
    NUMBER_OR_TEXT,
    QUANTITY,
    TEXT,
    CelRule,
    Schema,
    choice,
    define_closed,
    list_of,
    number,
    text,
)

_NAME = text(least=1, most=253)
_DURATION = text(r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
_NAMESPACE = text(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", least=1, most=63)
_SECRET = define_closed(
    {"group": choice(""), "kind": choice("Secret"), "name": _NAME, "namespace": _NAMESPACE}, "name"
)
_HAS_TARGET = CelRule("has(self.targetRefs)", "either targetRef or targetRefs must be used")
_SOURCE = define_closed(
    {"headers": list_of(text(least=1), least=1)},
    rules=(
        CelRule(
            "has(self.headers)",
            "exactly one of headers, params, or cookies must be specified",
        ),
    ),
)
_API_KEY_AUTH = define_closed(
    {
        "credentialRefs": list_of(_SECRET),
        "extractFrom": list_of(_SOURCE, least=1),
        "forwardClientIDHeader": TEXT,
        "sanitize": BOOLEAN,
    },
    "credentialRefs",
    "extractFrom",
)
_TARGET = define_closed(
    {"group": choice("gateway.networking.k8s.io"), "kind": choice("HTTPRoute"), "name": _NAME},
    "group",
    "kind",
    "name",
)
_JWT_HEADER = define_closed({"name": TEXT, "valuePrefix": TEXT}, "name")
_PROVIDER = define_closed(
    {
        "name": _NAME,
        "issuer": text(most=253),
        "audiences": list_of(TEXT, most=8),
        "remoteJWKS": define_closed({"uri": _NAME, "cacheDuration": _DURATION}, "uri"),
        "extractFrom": define_closed({"headers": list_of(_JWT_HEADER)}),
        "claimToHeaders": list_of(
            define_closed({"header": TEXT, "claim": TEXT}, "header", "claim")
        ),
    },
    "name",
    rules=(CelRule("has(self.remoteJWKS)", "either remoteJWKS or localJWKS must be specified."),),
)
_CLAIM = define_closed(
    {
        "name": _NAME,
        "valueType": choice("String", "StringArray", default="String"),
        # Envoy Gateway 1.5 takes 16.
        "values": list_of(TEXT, least=1, most=128),
    },
    "name",
    "values",
)
_PRINCIPAL = define_closed(
    {
        "jwt": define_closed(
            {"provider": _NAME, "claims": list_of(_CLAIM, least=1, most=16)},
            "provider",
            rules=(
                CelRule("has(self.claims)", "at least one of claims or scopes must be specified"),
            ),
        )
    },
    rules=(
        CelRule(
            "has(self.jwt)",
            "at least one of clientCIDRs, jwt, headers, or clientIPGeoLocations must be specified",
        ),
    ),
)
_AUTHORIZATION_RULE = define_closed(
    {"name": _NAME, "action": choice("Allow", "Deny"), "principal": _PRINCIPAL},
    "action",
    "principal",
)
SECURITY_POLICY_SPEC = define_closed(
    {
        "targetRefs": list_of(_TARGET),
        "apiKeyAuth": _API_KEY_AUTH,
        "jwt": define_closed({"providers": list_of(_PROVIDER, least=1, most=16)}, "providers"),
        "authorization": define_closed(
            {"defaultAction": choice("Allow", "Deny"), "rules": list_of(_AUTHORIZATION_RULE)}
        ),
    },
    rules=(
        _HAS_TARGET,
        CelRule(
            "has(self.jwt) || !has(self.authorization) || !has(self.authorization.rules)"
            " || !self.authorization.rules.exists(r, has(r.principal.jwt))",
            "if authorization.rules.principal.jwt is used, jwt must be defined",
        ),
    ),
)

_HEADER = define_closed(
    {
        "name": text(least=1, most=256),
        "type": choice("Exact", "RegularExpression", "Distinct", default="Exact"),
        "value": text(most=1024),
        "invert": Schema(BOOLEAN.types, enum=(False,), default=False),
    },
    "name",
)
_RATE_LIMIT_RULE = define_closed(
    {
        "clientSelectors": list_of(
            define_closed({"headers": list_of(_HEADER, most=128)}, "headers"), most=8
        ),
        "limit": define_closed(
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
BACKEND_TRAFFIC_POLICY_SPEC = define_closed(
    {
        "targetRefs": list_of(_TARGET),
        "mergeType": choice("StrategicMerge", "JSONMerge"),
        "rateLimit": define_closed(
            {
                "type": choice("Local"),
                "local": define_closed({"rules": list_of(_RATE_LIMIT_RULE, most=16)}),
            },
            "type",
        ),
        "requestBuffer": define_closed({"limit": Schema(NUMBER_OR_TEXT, form=QUANTITY)}, "limit"),
    },
    rules=(_HAS_TARGET,),
)
_LUA = define_closed({"type": choice("Inline"), "inline": TEXT}, "type", "inline")
ENVOY_EXTENSION_POLICY_SPEC = define_closed(
    {"targetRefs": list_of(_TARGET), "lua": list_of(_LUA, most=16)}, rules=(_HAS_TARGET,)
)
HTTP_ROUTE_FILTER_SPEC = define_closed(
    {
        "credentialInjection": define_closed(
            {
                "header": TEXT,
                "overwrite": BOOLEAN,
                "credential": define_closed({"valueRef": _SECRET}, "valueRef"),
            },
            "credential",
        )
    }
)
