"""Bodies that get as far as the service, where the permission matrix sends one that the form refuses."""

from __future__ import annotations

from typing import Any, Final

_RULES: Final = {"approvals": "2", "role": "lead", "promoted_from": ""}
_RULE: Final = {"name": "two", "needed": "2", "role": "lead"}
_CLUSTER: Final = {
    "name": "other",
    "kind": "kubeconfig",
    "region": "us-east-1",
    "kubeconfig_path": "/etc/kubeconfig",
    "gateway_url": "http://gateway.example",
    "gateway_namespace": "slipway-gateway",
    "gateway_name": "slipway",
}
BODIES: Final[dict[str, dict[str, Any]]] = {
    "POST admin/teams/<str:slug>/delegates": {
        "username": "member",
        "ends_on": "2999-01-01",
        "reason": "away",
    },
    "POST admin/teams/<slug:slug>/environments/<slug:environment>": _RULES,
    "POST admin/environments/<slug:environment>": _RULES,
    "POST admin/teams/<str:slug>/delivery": {
        "method": "git",
        "repository_url": "https://git.example/platform/fleet.git",
        "branch": "main",
    },
    "POST admin/people/<str:username>/connect": {"provider": "okta", "subject": "abc"},
    "POST admin/clusters/new": _CLUSTER,
    "POST admin/clusters/<int:cluster_id>/edit": _CLUSTER,
    "POST admin/provisioning": {"provider": "okta"},
    "POST admin/policy": _RULE,
    "POST admin/policy/<int:rule_id>": _RULE,
    "POST admin/token-issuers": {
        "name": "two",
        "url": "https://login.two.example",
        "jwks_url": "https://login.two.example/jwks",
        "audiences": "models",
        "claim": "sub",
    },
    "POST admin/signing/signers": {"name": "two", "kind": "key", "pem": "pem"},
    "POST admin/signing/identities": {
        "name": "two",
        "trust_root": "acme",
        "issuer": "https://issuer.example",
        "identity": "https://github.com/acme/models/.github/workflows/train.yml@refs/heads/main",
    },
    "POST admin/signing/roots": {"name": "two", "document": "{}"},
    "POST admin/signing/roots/<int:root_id>": {"document": "{}"},
    "POST admin/signing/rules": {"name": "two", "environments": "staging"},
    "post me/tokens": {"name": "notebook"},
}
