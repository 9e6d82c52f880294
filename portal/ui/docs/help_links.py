"""The help links of the pages: a document and its heading for each. A test follows every one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from portal.ui.docs import documents

# By the name of the page's URL: the document, and the anchor of its heading.
LINKS: Final[Mapping[str, tuple[str, str]]] = {
    "admin-clusters": ("install", "7-first-admin-prices-clusters"),
    "admin-people": ("sign-in", "who-a-person-is"),
    "admin-person": ("sign-in", "who-a-person-is"),
    "admin-policy": ("environments", "whose-rules-hold"),
    "admin-prices": ("install", "7-first-admin-prices-clusters"),
    "admin-provisioning": ("sign-in", "provisioning-scim"),
    "admin-signing": ("attestations", "trusted-signers"),
    "admin-team": ("tokens", "service-accounts"),
    "advice": ("advice", ""),
    "alerts": ("alerts", ""),
    "approvals": ("environments", "whose-rules-hold"),
    "audit": ("audit", ""),
    "caller-costs": ("callers", "usage-and-cost"),
    "callers": ("callers", "keys"),
    "admin-token-issuers": ("callers", "tokens-of-an-identity-provider"),
    "change": ("environments", "promotion"),
    "costs": ("focus", ""),
    "environment-rules": ("environments", "whose-rules-hold"),
    "environments": ("environments", ""),
    "batch-job": ("batch", ""),
    "batch-jobs": ("batch", ""),
    "health": ("quality-watch", ""),
    "load-tests": ("formats", ""),
    "new-deployment": ("autoscaling", ""),
    "passkeys": ("sign-in", "local-accounts"),
    "promote-deployment": ("environments", "promotion"),
    "request-canary": ("evidence", "the-guards"),
    "rollout": ("evidence", "the-guards"),
    "trust-root": ("attestations", "keyless-identities"),
    "second-factor": ("sign-in", "local-accounts"),
    "security": ("sign-in", "local-accounts"),
    "targets": ("targets", ""),
    "team-environment-rules": ("environments", "whose-rules-hold"),
    "tokens": ("tokens", "scopes"),
    "upload": ("formats", ""),
    "version-config": ("triton-config", ""),
    "what-if": ("advice", "what-if"),
}


def address_for(url_name: str) -> str:
    """Return the help link of a screen, or the index for a screen without one."""
    name, anchor = LINKS.get(url_name, (documents.INDEX, ""))
    return documents.address_of(name, anchor)
