"""Schemas of Istio's policies of requests, as far as this cluster enforces them: tokens of a Gateway, and
denied requests.

From the reference of Istio 1.27. With SLIPWAY_CRD_DIR the published one is used.
"""

from slipway_localcluster.schemas.schema import BOOLEAN, TEXT, choice, closed, list_of, text

_NAME = text(least=1, most=253)
_TARGETS = list_of(
    closed(
        {"group": choice("gateway.networking.k8s.io"), "kind": choice("Gateway"), "name": _NAME},
        "kind",
        "name",
    ),
    most=16,
)
_RULE = closed(
    {
        "issuer": text(least=1),
        "audiences": list_of(text(least=1)),
        "jwks": TEXT,
        "fromHeaders": list_of(closed({"name": text(least=1), "prefix": TEXT}, "name")),
        "outputClaimToHeaders": list_of(
            closed(
                {"header": text(r"^[-_A-Za-z0-9]+$", least=1), "claim": text(least=1)},
                "header",
                "claim",
            )
        ),
        "forwardOriginalToken": BOOLEAN,
    }
)
REQUEST_AUTHENTICATION_SPEC = closed(
    {"targetRefs": _TARGETS, "jwtRules": list_of(_RULE, most=4096)}
)

_SOURCE = closed({"source": closed({"notRequestPrincipals": list_of(TEXT)})})
_OPERATION = closed({"operation": closed({"paths": list_of(TEXT)})})
_CONDITION = closed({"key": TEXT, "values": list_of(TEXT)}, "key")
AUTHORIZATION_POLICY_SPEC = closed(
    {
        "targetRefs": _TARGETS,
        "action": choice("DENY"),
        "rules": list_of(
            closed(
                {
                    "from": list_of(_SOURCE, most=512),
                    "to": list_of(_OPERATION),
                    "when": list_of(_CONDITION),
                }
            ),
            most=512,
        ),
    }
)
