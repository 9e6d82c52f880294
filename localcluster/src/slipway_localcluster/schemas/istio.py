"""Schemas of Istio's policies of requests, as far as this cluster enforces them: tokens of a Gateway, and
denied requests.

From the reference of Istio 1.27. With SLIPWAY_CRD_DIR the published one is used.
"""

from slipway_localcluster.schemas.schema import BOOLEAN, TEXT, choice, define_closed, list_of, text

_NAME = text(least=1, most=253)
_TARGETS = list_of(
    define_closed(
        {"group": choice("gateway.networking.k8s.io"), "kind": choice("Gateway"), "name": _NAME},
        "kind",
        "name",
    ),
    most=16,
)
_RULE = define_closed(
    {
        "issuer": text(least=1),
        "audiences": list_of(text(least=1)),
        "jwks": TEXT,
        "fromHeaders": list_of(define_closed({"name": text(least=1), "prefix": TEXT}, "name")),
        "outputClaimToHeaders": list_of(
            define_closed(
                {"header": text(r"^[-_A-Za-z0-9]+$", least=1), "claim": text(least=1)},
                "header",
                "claim",
            )
        ),
        "forwardOriginalToken": BOOLEAN,
    }
)
REQUEST_AUTHENTICATION_SPEC = define_closed(
    {"targetRefs": _TARGETS, "jwtRules": list_of(_RULE, most=4096)}
)

_SOURCE = define_closed({"source": define_closed({"notRequestPrincipals": list_of(TEXT)})})
_OPERATION = define_closed({"operation": define_closed({"paths": list_of(TEXT)})})
_CONDITION = define_closed({"key": TEXT, "values": list_of(TEXT)}, "key")
AUTHORIZATION_POLICY_SPEC = define_closed(
    {
        "targetRefs": _TARGETS,
        "action": choice("DENY"),
        "rules": list_of(
            define_closed(
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
