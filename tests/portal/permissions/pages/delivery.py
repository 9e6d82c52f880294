"""Pages and forms of a team's models, deployments and pipelines."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import ADMINS, DECIDERS, LEADS, MEMBERS, TEAM, Row
from tests.portal.permissions.pages.requests import (
    ANSWER,
    BATCH,
    CALLER,
    DEPLOYMENT,
    LOAD_TESTS,
    MODEL,
    PIPELINE,
    PRESETS,
    TARGET,
    TEMPLATES,
    VERSION,
    WHY,
)

TEAM_PAGES: Final = tuple(
    Row(f"GET {route}", TEAM)
    for route in (
        "<team:team>",
        *(
            f"<slug:team>/{section}"
            for section in (
                *("models", "deployments", "pipelines", "batch"),
                *("upload", "import", "register"),
            )
        ),
        DEPLOYMENT,
        *(
            f"{DEPLOYMENT}/{tab}"
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
        MODEL,
        VERSION,
        f"{VERSION}/checks",
        f"{VERSION}/config.pbtxt",
        BATCH,
        PIPELINE,
        PRESETS,
        TEMPLATES,
        LOAD_TESTS,
    )
)
FORMS_OF_MEMBERS: Final = tuple(
    Row(f"GET {route}", MEMBERS)
    for route in (
        *(
            f"{DEPLOYMENT}/{form}"
            for form in ("canary", "retire", "roll-back", "scale", "start", "stop")
        ),
        f"{MODEL}/edit",
        f"{MODEL}/golden-requests/new",
        f"{VERSION}/metadata",
        *(f"{PIPELINE}/{form}" for form in ("retire", "start", "stop")),
        f"{TEMPLATES}/edit",
    )
)
DEPLOYMENTS: Final = (
    Row("POST <team:team>/dismissed", TEAM, ok=303, body={"key": "deployment 1"}),
    Row("POST <team:team>/dismissed/restore", TEAM, ok=303, body={"key": "deployment 1"}),
    # No longer what it was: nothing of this deployment was measured.
    Row("POST alerts/<int:alert_id>/silence", LEADS, ok=302, body={"hours": "1", **WHY}),
    # It is not silenced.
    Row("POST alerts/<int:alert_id>/unsilence", LEADS, ok=302),
    Row("POST advice/<int:item_id>/request", MEMBERS, ok=409),
    Row("POST advice/<int:item_id>/snooze", MEMBERS, ok=302, body={"days": "7"}),
    Row("POST advice/<int:item_id>/dismiss", MEMBERS, ok=302, body=WHY),
    Row("POST advice/<int:item_id>/reopen", MEMBERS, ok=409),
    Row("GET <slug:team>/deployments/new", MEMBERS),
    Row(
        "POST <slug:team>/deployments/drafts/<str:key>/delete",
        MEMBERS,
        ok=302,
        named={"key": "gone"},
    ),
    Row("POST <slug:team>/deployments/new", MEMBERS, ok=422, body={"go": "submit"}),
    Row("GET <slug:team>/batch/new", MEMBERS),
    Row("POST <slug:team>/batch/new", MEMBERS, ok=422, body={"name": "x"}),
    Row(f"GET {BATCH}/parts/<int:number>", TEAM, ok=404, named={"number": 1}),
    Row(f"POST {BATCH}", MEMBERS, ok=302, body={"decision": "cancel"}),
    # It serves in production, the last environment.
    Row(f"GET {DEPLOYMENT}/promote", MEMBERS, ok=409),
    Row(f"POST {DEPLOYMENT}/canary", MEMBERS, ok=422, body={"go": "submit", "version": "0"}),
    Row(f"POST {DEPLOYMENT}/retire", MEMBERS, ok=409, body={"confirmation": "detector"}),
    Row(f"POST {DEPLOYMENT}/roll-back", MEMBERS, ok=422, body={**WHY, "revision": "99"}),
    Row(f"POST {DEPLOYMENT}/scale", MEMBERS, ok=422, body=WHY),
    Row(f"POST {DEPLOYMENT}/start", MEMBERS, ok=409, body=WHY),
    Row(f"POST {DEPLOYMENT}/stop", MEMBERS, ok=409, body=WHY),
    Row(
        f"POST {DEPLOYMENT}/drift",
        MEMBERS,
        ok=302,
        body={"choice": "always hold"},
        others={"viewer": 302},
    ),
    Row(f"POST {DEPLOYMENT}/rollout", MEMBERS, ok=302, body={"action": "abort", "reason": "x"}),
    Row(f"GET {DEPLOYMENT}/rollout/promote-fully", LEADS),
    Row(
        f"POST {DEPLOYMENT}/quality",
        MEMBERS,
        ok=302,
        body={"watch": "off"},
        others={"viewer": 302},
    ),
    Row(f"POST {DEPLOYMENT}/targets", MEMBERS, ok=302, body=TARGET),
    Row(f"POST {DEPLOYMENT}/callers", LEADS, body=CALLER),
    Row(f"POST {DEPLOYMENT}/try", TEAM, ok=422, body={"body": "["}),
    # Its address is open.
    Row(f"POST {DEPLOYMENT}/try/key", LEADS, ok=409),
    Row(
        "POST approvals/<int:change_id>",
        DECIDERS,
        # It was approved already, so the page comes back with the comment.
        ok=409,
        body={"decision": "reject", "comment": "no"},
    ),
)
MODELS: Final = (
    Row("GET <slug:team>/import/mlflow/<slug:server>", TEAM, ok=404, named={"server": "lab"}),
    Row(f"GET {MODEL}/compare", TEAM, query="?v=1&v=2"),
    Row(f"POST {MODEL}/edit", MEMBERS, ok=302, body={"task": "boxes", "description": "x"}),
    Row(f"POST {MODEL}/golden-requests", MEMBERS, ok=302, body=ANSWER),
    Row(f"POST {MODEL}/golden-requests/new", MEMBERS, ok=422, body={"name": "x"}),
    Row(f"POST {MODEL}/golden-requests/<int:golden_id>/delete", MEMBERS, ok=302),
    Row(f"POST {VERSION}/alias", MEMBERS, ok=302, body={"alias": "other", "name": "other"}),
    Row(f"POST {VERSION}/archive", MEMBERS, ok=409),
    # Without a file.
    Row(f"POST {VERSION}/attestations", MEMBERS, ok=422),
    Row(f"POST {VERSION}/attestations/<int:attestation_id>/remove", MEMBERS, ok=302),
    Row(f"POST {VERSION}/declare", MEMBERS, ok=409, body={"max_batch_size": "32"}),
    # The version has no code.
    Row(f"GET {VERSION}/code", MEMBERS, ok=404),
    Row(f"POST {VERSION}/discard", MEMBERS, ok=409),
    Row(f"POST {VERSION}/restore", MEMBERS, ok=409),
    Row(f"POST {VERSION}/stop", MEMBERS, ok=409),
    Row(f"POST {VERSION}/metadata", MEMBERS, ok=302, body={"notes": "x"}),
    Row(f"POST {VERSION}/release", ADMINS, ok=409, body={"reason": "tried", "days": "7"}),
    Row("GET <slug:team>/imports/<int:import_id>", TEAM),
    Row("POST <slug:team>/imports/<int:import_id>/cancel", MEMBERS, ok=302),
    Row("POST <slug:team>/imports/<int:import_id>/resume", MEMBERS, ok=409),
    Row(
        "POST <slug:team>/import",
        MEMBERS,
        ok=302,
        body={
            "model": "other",
            "address": "https://models.example/m.onnx",
            "max_batch_size": "32",
        },
    ),
    Row(
        "POST <slug:team>/register",
        MEMBERS,
        ok=302,
        body={"model": "other", "source_uri": "hf://org/model"},
    ),
)
PIPELINES: Final = (
    Row("GET <slug:team>/pipelines/new", MEMBERS),
    Row("POST <slug:team>/pipelines/new", MEMBERS, ok=200, body={"name": "x"}),
    # It was never applied, so there are no steps to change.
    Row(f"GET {PIPELINE}/change", MEMBERS, ok=302),
    Row(f"POST {PIPELINE}/change", MEMBERS, ok=302, body={"submit": "1"}),
    Row(f"POST {PIPELINE}/retire", MEMBERS, ok=409, body=WHY),
    Row(f"POST {PIPELINE}/start", MEMBERS, ok=409, body=WHY),
    Row(f"POST {PIPELINE}/stop", MEMBERS, ok=409, body=WHY),
    Row(f"POST {PIPELINE}/try", TEAM, ok=409, body={"body": "{}"}),
)
