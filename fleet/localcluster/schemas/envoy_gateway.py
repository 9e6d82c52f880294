"""Schema of Envoy Gateway's SecurityPolicy, as far as this cluster enforces it: API keys of an HTTPRoute.

From the reference of Envoy Gateway 1.7. With SLIPWAY_CRD_DIR the published one is used.
"""

from fleet.localcluster.schemas.schema import BOOLEAN, TEXT, Rule, choice, closed, list_of, text

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
SECURITY_POLICY_SPEC = closed({"targetRefs": list_of(_TARGET), "apiKeyAuth": _API_KEY_AUTH})
