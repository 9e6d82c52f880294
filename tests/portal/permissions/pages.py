"""The rows of pages. Bodies are what a member could send, so that a refusal is about the actor."""

from __future__ import annotations

from typing import Any, Final

from tests.portal.permissions.matrix import (
    ADMINS,
    DECIDERS,
    EVERYONE,
    LEADS,
    MEMBERS,
    TEAM,
    Row,
)

_DEPLOYMENT: Final = "deployments/<slug:team>/<slug:name>"
_MODEL: Final = "models/<slug:team>/<slug:name>"
_VERSION: Final = f"{_MODEL}/<int:number>"
_OFFICE_HOURS: Final = "fleet/clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:name>"
_BATCH: Final = "batch/<slug:team>/<slug:name>"
_PIPELINE: Final = "pipelines/<slug:team>/<slug:name>"
_TEAM: Final = "admin/teams/<str:slug>"
_LOAD_TESTS: Final = "admin/teams/<slug:slug>/load-tests"
_TEMPLATES: Final = "admin/teams/<slug:slug>/rollout-templates"
_CLUSTER: Final = "admin/clusters/<int:cluster_id>"
_PERSON: Final = "admin/people/<str:username>"
_POLICY: Final = "admin/policy/<int:rule_id>"
_NEW_PERSON: Final = {"username": "ana", "password": "three grey herons"}
_INVITED: Final = {"name": "Ana", "email": "ana@example.org", "role": "member"}
_CALLER: Final = {"name": "x", "kind": "service", "contact": "ana", "days": "90"}
_TARGET: Final = {"metric": "availability", "objective_percent": "99", "window_days": "7"}
_WHY: Final = {"comment": "tried", "reason": "tried"}
_TENSOR: Final = '{"name": "%s", "datatype": "FP32", "shape": [1], "data": [1.0]}'
_ANSWER: Final = {
    "name": "other",
    "request": '{"inputs": [' + _TENSOR % "x" + "]}",
    "expected": '{"outputs": [' + _TENSOR % "y" + "]}",
}


def _for_anyone(key: str, status: int = 200, **more: Any) -> Row:
    return Row(key, f"anonymous {EVERYONE}", ok=status, **more)


def _of_admins(key: str, ok: int = 200, **more: Any) -> Row:
    """Tells who is no admin so, whatever the team: it hides nothing."""
    return Row(key, ADMINS, ok=ok, stranger=403, **more)


OPEN: Final = (
    _for_anyone("GET healthz"),
    _for_anyone("GET readyz"),
    _for_anyone("GET .well-known/jwks.json"),
    _for_anyone("GET sign-in"),
    _for_anyone("POST sign-in", body={"username": "x", "password": "x"}),
    _for_anyone("PUT sign-in"),
    # None is set up here; tests/portal/accounts/oidc has one.
    _for_anyone("GET sign-in/with/<str:provider_id>", 404, named={"provider_id": "lab"}),
    _for_anyone("GET sign-in/with/<str:provider_id>/callback", 404, named={"provider_id": "lab"}),
    _for_anyone("POST sign-out", 302),
    _for_anyone("GET api/docs"),
    _for_anyone("POST theme", 302, body={"theme": "dark"}),
    _for_anyone("GET charts/vega-<str:version>.js", 404),
    Row("GET session", EVERYONE, others={"anonymous": 401}),
    # Whoever has the link opens it. This one was never given out.
    _for_anyone("GET invitation/<str:token>", 302),
    _for_anyone("GET password-link/<str:token>", 302),
    _for_anyone("GET password-link", 410),
    _for_anyone("POST password-link", 410, body=_NEW_PERSON),
    _for_anyone("GET sign-in/code", 302),
    _for_anyone("POST sign-in/code", 302, body={"code": "000000"}),
    _for_anyone("GET sign-in/forgotten"),
    _for_anyone("POST sign-in/forgotten", body={"email": "ana@example.org"}),
    _for_anyone("GET invitation", 410),
    _for_anyone("POST invitation", 410, body=_NEW_PERSON),
)
OF_EVERYONE: Final = tuple(
    Row(f"GET {route}", EVERYONE)
    for route in (
        "",
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
        "batch",
        "costs",
        "costs.csv",
        "costs/callers",
        "costs/callers.csv",
        "costs/ledger",
        "costs/ledger.csv",
        "deployments",
        "docs",
        "fleet",
        "fleet/actions",
        "fleet/actions/<int:action_id>",
        "fleet/nodes/<int:node_id>",
        "fleet/nodes/<int:node_id>/actions",
        "fleet/nodes/gone",
        "fleet/clusters/<int:cluster_id>/node-classes",
        "fleet/clusters/<int:cluster_id>/node-groups",
        "fleet/pools",
        "import",
        "jump",
        "models",
        "models/quarantined-in-use",
        "pipelines",
        "register",
        "upload",
        "what-if",
    )
)
OF_ONESELF: Final = (
    Row("GET docs/<str:name>", EVERYONE, named={"name": "tokens"}),
    Row(
        "GET docs/adr/<str:record>",
        EVERYONE,
        named={"record": "0062-environments-have-rules-of-their-own"},
    ),
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
    _for_anyone("GET decide/<str:token>", 404),
    Row("GET decisions/<int:link_id>", EVERYONE, ok=404),
    # None is configured here.
    Row("GET import/mlflow/<slug:server>", EVERYONE, ok=404, named={"server": "lab"}),
    Row("POST decisions/<int:link_id>", EVERYONE, ok=404, body={"choice": "approve"}),
    # A lead reads the trail of the own team, so the stranger, who leads another, gets that.
    Row("GET audit", f"stranger {LEADS}"),
)
TEAM_PAGES: Final = tuple(
    Row(f"GET {route}", TEAM)
    for route in (
        _DEPLOYMENT,
        *(
            f"{_DEPLOYMENT}/{tab}"
            for tab in (
                "rollout",
                "revisions",
                "manifests",
                "timeline",
                "logs",
                "try",
                "quality",
                "targets",
                "callers",
                "cost",
            )
        ),
        "approvals/<int:change_id>",
        _MODEL,
        _VERSION,
        f"{_VERSION}/checks",
        f"{_VERSION}/config.pbtxt",
        _BATCH,
        _PIPELINE,
        _TEMPLATES,
        _LOAD_TESTS,
    )
)
FORMS_OF_MEMBERS: Final = tuple(
    Row(f"GET {route}", MEMBERS)
    for route in (
        *(
            f"{_DEPLOYMENT}/{form}"
            for form in ("canary", "retire", "roll-back", "scale", "start", "stop")
        ),
        f"{_MODEL}/edit",
        f"{_MODEL}/golden-requests/new",
        f"{_VERSION}/metadata",
        *(f"{_PIPELINE}/{form}" for form in ("retire", "start", "stop")),
        f"{_TEMPLATES}/edit",
    )
)
DEPLOYMENTS: Final = (
    # No longer what it was: nothing of this deployment was measured.
    Row("POST alerts/<int:alert_id>/silence", LEADS, ok=302, body={"hours": "1", **_WHY}),
    # It is not silenced.
    Row("POST alerts/<int:alert_id>/unsilence", LEADS, ok=302),
    Row("POST advice/<int:item_id>/request", MEMBERS, ok=409),
    Row("POST advice/<int:item_id>/snooze", MEMBERS, ok=302, body={"days": "7"}),
    Row("POST advice/<int:item_id>/dismiss", MEMBERS, ok=302, body=_WHY),
    Row("POST advice/<int:item_id>/reopen", MEMBERS, ok=409),
    # For the actor's own team, which an outsider has too.
    Row("GET deployments/new", f"stranger {MEMBERS}"),
    Row("POST deployments/new", f"stranger {MEMBERS}", ok=422, body={"go": "submit"}),
    Row("GET batch/new", f"stranger {MEMBERS}"),
    Row("POST batch/new", f"stranger {MEMBERS}", ok=422, body={"name": "x"}),
    Row(f"GET {_BATCH}/parts/<int:number>", TEAM, ok=404, named={"number": 1}),
    Row(f"POST {_BATCH}", MEMBERS, ok=302, body={"decision": "cancel"}),
    # It serves in production, the last environment.
    Row(f"GET {_DEPLOYMENT}/promote", MEMBERS, ok=409),
    Row(f"POST {_DEPLOYMENT}/canary", MEMBERS, ok=422, body={"go": "submit", "version": "0"}),
    Row(f"POST {_DEPLOYMENT}/retire", MEMBERS, ok=409, body={"confirmation": "detector"}),
    Row(f"POST {_DEPLOYMENT}/roll-back", MEMBERS, ok=422, body={**_WHY, "revision": "99"}),
    Row(f"POST {_DEPLOYMENT}/scale", MEMBERS, ok=422, body=_WHY),
    Row(f"POST {_DEPLOYMENT}/start", MEMBERS, ok=409, body=_WHY),
    Row(f"POST {_DEPLOYMENT}/stop", MEMBERS, ok=409, body=_WHY),
    Row(
        f"POST {_DEPLOYMENT}/drift",
        MEMBERS,
        ok=302,
        body={"choice": "always hold"},
        others={"viewer": 302},
    ),
    Row(f"POST {_DEPLOYMENT}/rollout", MEMBERS, ok=302, body={"action": "abort", "reason": "x"}),
    Row(f"GET {_DEPLOYMENT}/rollout/promote-fully", LEADS),
    Row(
        f"POST {_DEPLOYMENT}/quality",
        MEMBERS,
        ok=302,
        body={"watch": "off"},
        others={"viewer": 302},
    ),
    Row(f"POST {_DEPLOYMENT}/targets", MEMBERS, ok=302, body=_TARGET),
    Row(f"POST {_DEPLOYMENT}/callers", LEADS, body=_CALLER),
    Row(f"POST {_DEPLOYMENT}/try", TEAM, ok=422, body={"body": "["}),
    Row(
        "POST approvals/<int:change_id>",
        DECIDERS,
        ok=409,
        body={"decision": "reject", "comment": "no"},
    ),
)
MODELS: Final = (
    Row(f"GET {_MODEL}/compare", TEAM, query="?v=1&v=2"),
    Row(f"POST {_MODEL}/edit", MEMBERS, ok=302, body={"task": "boxes", "description": "x"}),
    Row(f"POST {_MODEL}/golden-requests", MEMBERS, ok=302, body=_ANSWER),
    Row(f"POST {_MODEL}/golden-requests/new", MEMBERS, ok=422, body={"name": "x"}),
    Row(f"POST {_MODEL}/golden-requests/<int:golden_id>/delete", MEMBERS, ok=302),
    Row(f"POST {_VERSION}/alias", MEMBERS, ok=302, body={"alias": "other", "name": "other"}),
    Row(f"POST {_VERSION}/archive", MEMBERS, ok=409),
    # Without a file.
    Row(f"POST {_VERSION}/attestations", MEMBERS, ok=422),
    Row(f"POST {_VERSION}/attestations/<int:attestation_id>/remove", MEMBERS, ok=302),
    Row(f"POST {_VERSION}/declare", MEMBERS, ok=409, body={"max_batch_size": "32"}),
    # The version has no code.
    Row(f"GET {_VERSION}/code", MEMBERS, ok=404),
    Row(f"POST {_VERSION}/discard", MEMBERS, ok=409),
    Row(f"POST {_VERSION}/restore", MEMBERS, ok=409),
    Row(f"POST {_VERSION}/stop", MEMBERS, ok=409),
    Row(f"POST {_VERSION}/metadata", MEMBERS, ok=302, body={"notes": "x"}),
    Row(f"POST {_VERSION}/release", ADMINS, ok=409, body={"reason": "tried", "days": "7"}),
    Row("GET imports/<int:import_id>", TEAM),
    Row("POST imports/<int:import_id>/cancel", MEMBERS, ok=302),
    Row("POST imports/<int:import_id>/resume", MEMBERS, ok=409),
    # Only teams of one's own can be chosen.
    Row(
        "POST import",
        MEMBERS,
        ok=302,
        body={
            "team": "vision",
            "model": "other",
            "address": "https://models.example/m.onnx",
            "max_batch_size": "32",
        },
        others={"stranger": 422, "viewer": 422},
    ),
    Row(
        "POST register",
        MEMBERS,
        ok=302,
        body={"team": "vision", "model": "other", "source_uri": "hf://org/model"},
        others={"stranger": 422, "viewer": 422},
    ),
)
PIPELINES: Final = (
    Row("GET pipelines/new", f"stranger {MEMBERS}"),
    Row("POST pipelines/new", f"stranger {MEMBERS}", ok=200, body={"name": "x"}),
    # It was never applied, so there are no steps to change.
    Row(f"GET {_PIPELINE}/change", MEMBERS, ok=302),
    Row(f"POST {_PIPELINE}/change", MEMBERS, ok=302, body={"submit": "1"}),
    Row(f"POST {_PIPELINE}/retire", MEMBERS, ok=409, body=_WHY),
    Row(f"POST {_PIPELINE}/start", MEMBERS, ok=409, body=_WHY),
    Row(f"POST {_PIPELINE}/stop", MEMBERS, ok=409, body=_WHY),
    Row(f"POST {_PIPELINE}/try", TEAM, ok=409, body={"body": "{}"}),
)
TEAMS: Final = (
    Row("GET admin", f"stranger {LEADS}"),
    _of_admins(
        "POST admin",
        302,
        body={"slug": "audio", "name": "A", "quota_gpus": "1", "monthly_budget_amount": "1"},
    ),
    Row(f"GET {_TEAM}", LEADS),
    Row(f"GET {_TEAM}/notifications", LEADS),
    Row(f"POST {_TEAM}/notifications", LEADS, ok=422),
    Row(f"POST {_TEAM}/invitations", LEADS, body=_INVITED),
    _of_admins("POST admin/invitations", body={**_INVITED, "team": "vision"}),
    Row("POST admin/invitations/<int:invitation_id>/revoke", LEADS, ok=302),
    Row(f"POST {_TEAM}/members", LEADS, ok=302, body={"username": "stranger", "role": "viewer"}),
    Row(f"POST {_TEAM}/members/<str:username>/remove", LEADS, ok=302),
    Row(
        f"POST {_TEAM}/limits",
        ADMINS,
        ok=302,
        body={"quota_gpus": "2", "monthly_budget_amount": "5"},
    ),
    Row(f"POST {_TEAM}/service-accounts", LEADS, body={"name": "deploy", "days": "90"}),
    Row(
        f"POST {_TEAM}/service-accounts/<str:account>/rotate",
        LEADS,
        body={"token_id": "service_token_id", "overlap_hours": "24"},
    ),
    Row(f"POST {_TEAM}/service-accounts/<str:account>/revoke", LEADS, ok=302),
    _of_admins(f"GET {_TEAM}/delivery"),
    _of_admins(f"POST {_TEAM}/delivery", 422),
    Row(f"POST {_TEAM}/delivery/test", ADMINS),
    Row(f"POST {_TEAM}/delegates", LEADS, ok=422),
    Row(f"POST {_TEAM}/delegates/<int:delegation_id>/end", LEADS, ok=302),
    Row("GET admin/teams/<slug:slug>/environments/<slug:environment>", LEADS),
    Row(
        "POST admin/teams/<slug:slug>/environments/<slug:environment>",
        LEADS,
        ok=422,
        body={"approvals": ""},
    ),
    Row("POST admin/teams/<slug:slug>/rollout-limit", LEADS, ok=302, body={"percent": "25"}),
    Row(
        f"POST {_LOAD_TESTS}",
        LEADS,
        ok=302,
        body={"cluster": "", "cpu": "2", "memory": "8Gi", "minutes": "30"},
    ),
    Row(f"POST {_TEMPLATES}/<int:template_id>/remove", MEMBERS, ok=302),
    Row(f"POST {_TEMPLATES}/edit", MEMBERS, ok=422, body={"name": "x"}),
    Row("POST channels/<int:channel_id>", LEADS, ok=302),
    Row("POST channels/<int:channel_id>/remove", LEADS, ok=302),
    Row("POST channels/<int:channel_id>/test", LEADS, ok=302),
)
PLATFORM: Final = (
    _of_admins("GET admin/people"),
    _of_admins(f"GET {_PERSON}"),
    _of_admins(f"POST {_PERSON}/password-link"),
    _of_admins(f"POST {_PERSON}/second-factor/remove", 409),
    _of_admins(f"POST {_PERSON}/connect", 422),
    _of_admins(f"POST {_PERSON}/deactivate", 302),
    _of_admins(f"POST {_PERSON}/reactivate", 409),
    _of_admins("GET admin/clusters"),
    _of_admins("GET admin/clusters/new"),
    _of_admins("POST admin/clusters/new", 422, body={"name": "x"}),
    _of_admins(f"GET {_CLUSTER}"),
    _of_admins(f"GET {_CLUSTER}/edit"),
    _of_admins(f"POST {_CLUSTER}/edit", 422, body={"name": "x"}),
    _of_admins(f"GET {_CLUSTER}/serving"),
    _of_admins(f"POST {_CLUSTER}/serving", 302, body={"x": "x"}),
    _of_admins(f"POST {_CLUSTER}/test"),
    *(
        Row(f"GET fleet/nodes/<int:node_id>/{form}", f"stranger {LEADS}")
        for form in ("drain", "cordon", "uncordon", "mig", "gpu-sharing")
    ),
    Row("POST fleet/nodes/<int:node_id>/cordon", f"stranger {LEADS}", ok=302, body=_WHY),
    Row("POST fleet/nodes/<int:node_id>/uncordon", f"stranger {LEADS}", ok=409, body=_WHY),
    Row("POST fleet/nodes/<int:node_id>/drain", f"stranger {LEADS}", ok=422, body=_WHY),
    Row("POST fleet/nodes/<int:node_id>/mig", f"stranger {LEADS}", ok=422, body=_WHY),
    Row("POST fleet/nodes/<int:node_id>/gpu-sharing", f"stranger {LEADS}", ok=422, body=_WHY),
    *(
        row
        for new in ("pools/new", "node-classes/new")
        for row in (
            Row(f"GET fleet/clusters/<int:cluster_id>/{new}", f"stranger {LEADS}"),
            Row(
                f"POST fleet/clusters/<int:cluster_id>/{new}",
                f"stranger {LEADS}",
                ok=422,
                body=_WHY,
            ),
        )
    ),
    # There is none of this name.
    *(
        Row(
            f"{method} fleet/clusters/<int:cluster_id>/{address}",
            f"stranger {LEADS}",
            ok=404,
            body=_WHY if method == "POST" else {},
        )
        for method in ("GET", "POST")
        for address in (
            "pools/of/<slug:name>",
            "node-groups/<str:name>",
            "node-classes/of/<str:name>",
        )
    ),
    Row(f"GET {_OFFICE_HOURS}", EVERYONE, named={"kind": "node-pool", "name": "none"}),
    Row(
        f"POST {_OFFICE_HOURS}",
        f"stranger {LEADS}",
        ok=422,
        body=_WHY,
        named={"kind": "node-pool", "name": "none"},
    ),
    # The lead requested it.
    Row(
        "POST fleet/actions/<int:action_id>",
        LEADS,
        ok=302,
        body={"decision": "withdraw"},
        # Refused on the page itself.
        others=dict.fromkeys(["stranger", "viewer", "member", "delegate"], 403),
    ),
    _of_admins("GET admin/prices"),
    _of_admins("POST admin/prices/load", 302),
    _of_admins("GET admin/prices.csv"),
    _of_admins("POST admin/prices/import", 422),
    _of_admins("POST admin/prices/refresh", 302),
    _of_admins("GET admin/prices/enter"),
    _of_admins("POST admin/prices/enter", 422, body={"region": "x"}),
    _of_admins("GET admin/prices/of/<str:instance_type>", named={"instance_type": "g5.xlarge"}),
    _of_admins("POST admin/prices/<int:price_id>/remove", 404, named={"price_id": 0}),
    _of_admins("GET admin/environments/<slug:environment>"),
    _of_admins("POST admin/environments/<slug:environment>", 422, body={"approvals": ""}),
    _of_admins("GET admin/provisioning"),
    _of_admins("POST admin/provisioning", 422, body={"provider": "x"}),
    _of_admins("POST admin/provisioning/<int:token_id>/revoke", 404),
    _of_admins("GET admin/policy"),
    _of_admins("POST admin/policy", 422, body={"name": ""}),
    _of_admins(f"GET {_POLICY}"),
    _of_admins(f"POST {_POLICY}", 422, body={"name": ""}),
    _of_admins(f"POST {_POLICY}/switch", 302),
    _of_admins(f"POST {_POLICY}/delete", 302),
    _of_admins("GET admin/token-issuers"),
    _of_admins("POST admin/token-issuers", 422, body={"name": ""}),
    _of_admins("POST admin/token-issuers/<int:token_issuer_id>/remove", 302),
    _of_admins("GET admin/signing"),
    _of_admins("POST admin/signing/signers", 422, body={"name": ""}),
    _of_admins("POST admin/signing/signers/<int:signer_id>/remove", 302),
    _of_admins("POST admin/signing/rules", 422, body={"name": ""}),
    _of_admins("POST admin/signing/rules/<int:signing_rule_id>/delete", 302),
    _of_admins(f"POST {_CLUSTER}/delete", 302),
)
ROWS: Final = (
    *OPEN,
    *OF_EVERYONE,
    *OF_ONESELF,
    *TEAM_PAGES,
    *FORMS_OF_MEMBERS,
    *DEPLOYMENTS,
    *MODELS,
    *PIPELINES,
    *TEAMS,
    *PLATFORM,
)
