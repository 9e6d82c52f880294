"""Pages of everyone, and of one's own account."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import ADMINS, EVERYONE, LEADS, Row
from tests.portal.permissions.pages.requests import NEW_PERSON, for_anyone

OPEN: Final = (
    for_anyone("GET healthz"),
    for_anyone("GET readyz"),
    for_anyone("GET .well-known/jwks.json"),
    for_anyone("GET sign-in"),
    for_anyone("POST sign-in", body={"username": "x", "password": "x"}),
    for_anyone("PUT sign-in"),
    # None is set up here; tests/portal/accounts/oidc has one.
    for_anyone("GET sign-in/with/<str:provider_id>", 404, named={"provider_id": "lab"}),
    for_anyone("GET sign-in/with/<str:provider_id>/callback", 404, named={"provider_id": "lab"}),
    for_anyone("POST sign-out", 302),
    for_anyone("POST theme", 302, body={"theme": "dark"}),
    for_anyone("GET charts/vega-<str:version>.js", 404),
    Row("GET session", EVERYONE, others={"anonymous": 401}),
    # Whoever has the link opens it. This one was never given out.
    for_anyone("GET invitation/<str:token>", 302),
    for_anyone("GET password-link/<str:token>", 302),
    for_anyone("GET password-link", 410),
    for_anyone("POST password-link", 410, body=NEW_PERSON),
    for_anyone("GET sign-in/code", 302),
    for_anyone("POST sign-in/code", 302, body={"code": "000000"}),
    for_anyone("GET sign-in/forgotten"),
    for_anyone("POST sign-in/forgotten", body={"email": "ana@example.org"}),
    for_anyone("GET invitation", 410),
    for_anyone("POST invitation", 410, body=NEW_PERSON),
)
OF_EVERYONE: Final = tuple(
    Row(f"GET {route}", EVERYONE)
    for route in (
        "account/notifications",
        "account/second-factor",
        "account/second-factor/passkeys",
        "confirm",
        "account/security",
        "account/tokens",
        "admin/environments",
        "advice",
        "alerts",
        "approvals",
        "costs",
        "costs.csv",
        "costs/callers",
        "costs/callers.csv",
        "costs/ledger",
        "costs/ledger.csv",
        "docs",
        "docs/api",
        "fleet",
        "fleet/actions",
        "fleet/actions/<int:action_id>",
        "fleet/nodes/<int:node_id>",
        "fleet/nodes/<int:node_id>/actions",
        "fleet/nodes/gone",
        "fleet/clusters/<int:cluster_id>/node-classes",
        "fleet/clusters/<int:cluster_id>/node-groups",
        "fleet/pools",
        "jump",
        "quarantined-in-use",
        "what-if",
    )
)
OF_ONESELF: Final = (
    # To the home of their team; platform admins have one of all teams.
    Row("GET ", EVERYONE, ok=302, others={"admin": 200}),
    Row("GET docs/<str:name>", EVERYONE, named={"name": "tokens"}),
    Row(
        "GET docs/adr/<str:record>",
        EVERYONE,
        named={"record": "0062-environments-have-rules-of-their-own"},
    ),
    Row("GET docs/api/<slug:slug>", EVERYONE, named={"slug": "change-requests"}),
    Row("POST account/notifications", EVERYONE, ok=422),
    Row("POST account/password", EVERYONE, ok=422),
    Row("POST account/second-factor/passkeys", EVERYONE, ok=422),
    Row("POST account/second-factor/passkeys/remove", EVERYONE, ok=422),
    Row("POST account/second-factor/passkeys/begin", EVERYONE),
    Row("POST confirm", EVERYONE, ok=422),
    Row("POST account/second-factor", EVERYONE, ok=422),
    Row("POST account/second-factor/start", EVERYONE, ok=302),
    Row("POST account/second-factor/codes", EVERYONE, ok=422),
    Row("POST account/second-factor/remove", EVERYONE, ok=422),
    Row("POST account/sessions/end-others", EVERYONE, ok=302),
    # Of nobody.
    Row("POST account/sessions/<slug:name>/end", EVERYONE, ok=404),
    Row("POST account/tokens", EVERYONE, body={"name": "x", "days": "7"}),
    # The token is the admin's: of everybody else's tokens it is none.
    Row(
        "POST account/tokens/<int:token_id>/revoke",
        ADMINS,
        ok=302,
        others=dict.fromkeys(["stranger", "viewer", "member", "delegate", "lead"], 404),
    ),
    # Whoever has the link opens it; it decides nothing. This one was never given out.
    for_anyone("GET decide/<str:token>", 404),
    Row("GET decisions/<int:link_id>", EVERYONE, ok=404),
    # None is configured here.
    Row("POST decisions/<int:link_id>", EVERYONE, ok=404, body={"choice": "approve"}),
    # A lead reads the trail of the own team, so the stranger, who leads another, gets that.
    Row("GET audit", f"stranger {LEADS}"),
)
