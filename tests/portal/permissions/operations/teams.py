"""Operations that change what a team has, and one's own account."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import ADMINS, DECIDERS, EVERYONE, LEADS, MEMBERS, TEAM, Row
from tests.portal.permissions.operations.rows import rows_of

OF_MLFLOW: Final = (
    Row(
        "get mlflow-servers/{server}/models",
        MEMBERS,
        ok=404,
        stranger=404,
        named={"server": "lab"},
    ),
    Row(
        "get mlflow-servers/{server}/versions",
        MEMBERS,
        ok=404,
        stranger=404,
        named={"server": "lab"},
        query="?model=boxes",
    ),
)
# The version has no signature here.
CONVERTED_BY_THE_TEAM: Final = rows_of(TEAM, 422, "post versions/{version_id}/triton-config")
COMMENTED_BY_THE_TEAM: Final = rows_of(
    TEAM,
    201,
    "post changes/{change_id}/comments",
    "post pipeline-changes/{pipeline_change_id}/comments",
)
BY_MEMBERS: Final = (
    *rows_of(
        MEMBERS,
        200,
        "patch models/{team}/{name}",
        "patch versions/{version_id}",
        "post advice/{item_id}/dismiss",
        "post advice/{item_id}/snooze",
        "get batch-uploads/{upload_id}/files",
        "get batch-uploads/{upload_id}/parts",
        "post batch-jobs/check",
        "post batch-uploads/{upload_id}/parts",
        "post batch-jobs/{job_id}/cancel",
        "post deployments/preflight",
        "post imports/{import_id}/cancel",
        "post deployments/{deployment_id}/rollout-figures",
        "post pipeline-changes/{pipeline_change_id}/withdraw",
        "post pipelines/preview",
        "post rollouts/{rollout_id}/abort",
        "post rollouts/{rollout_id}/pause",
        "post versions/preview",
        "post versions/{version_id}/complete",
        "put deployments/{deployment_id}/drift",
        "put deployments/{deployment_id}/health",
        "put deployments/{deployment_id}/targets/{metric}",
    ),
    *rows_of(
        MEMBERS,
        201,
        "post batch-jobs",
        "post batch-uploads",
        "post deployments",
        "post deployments/{deployment_id}/observations",
        "post models",
        "post models/{team}/{name}/golden-requests",
        "post models/{team}/{name}/imports",
        "post models/{team}/{name}/references",
        "post models/{team}/{name}/versions",
        "post pipelines",
        "post teams/{slug}/rollout-templates",
        "post versions/{version_id}/attestations",
    ),
    *rows_of(
        MEMBERS,
        204,
        "delete deployments/{deployment_id}/targets/{metric}",
        "delete golden-requests/{golden_id}",
        "delete teams/{slug}/rollout-templates/{template_id}",
        "delete versions/{version_id}/attestations/{attestation_id}",
    ),
    *rows_of(MEMBERS, 200, "put models/{team}/{name}/aliases/{alias}", named={"alias": "staging"}),
    *rows_of(
        MEMBERS, 204, "delete models/{team}/{name}/aliases/{alias}", named={"alias": "staging"}
    ),
    *rows_of(MEMBERS, 422, "post sizing"),
    # Allowed, but not in the state that these are in.
    *rows_of(
        MEMBERS,
        409,
        "get versions/{version_id}/parts",
        "post advice/{item_id}/reopen",
        "post advice/{item_id}/request",
        "post batch-jobs/{job_id}/resume",
        "post batch-uploads/{upload_id}/complete",
        "post changes/{change_id}/withdraw",
        "post deployments/{deployment_id}/changes",
        "post deployments/{deployment_id}/changes/preflight",
        "post deployments/{deployment_id}/drift/adopt",
        "post deployments/{deployment_id}/drift/re-apply",
        "post imports/{import_id}/resume",
        "post pipelines/{pipeline_id}/request-stop",
        "post pipelines/{pipeline_id}/retire",
        "post pipelines/{pipeline_id}/start",
        "post pipelines/{pipeline_id}/stop",
        "post rollouts/{rollout_id}/unpause",
        "post versions/{version_id}/abandon",
        "post versions/{version_id}/archive",
        "post versions/{version_id}/declare",
        "post versions/{version_id}/discard",
        "post versions/{version_id}/files/complete",
        "post versions/{version_id}/parts",
        "post versions/{version_id}/restore",
        "post versions/{version_id}/stop",
        "put pipelines/{pipeline_id}",
    ),
)
# Stopping what serves in production needs an approval, whoever requests it.
OF_NOBODY: Final = rows_of("", 200, "post deployments/{deployment_id}/stop")
DECISIONS: Final = (
    *rows_of(
        DECIDERS,
        409,
        "post batch-jobs/{job_id}/approve",
        "post batch-jobs/{job_id}/reject",
        "post changes/{change_id}/approve",
        "post changes/{change_id}/reject",
        "post pipeline-changes/{pipeline_change_id}/approve",
    ),
    *rows_of(DECIDERS, 422, "post pipeline-changes/{pipeline_change_id}/reject"),
    *rows_of(
        LEADS,
        409,
        "post changes/{change_id}/approve-in-emergency",
        "post pipeline-changes/{pipeline_change_id}/approve-in-emergency",
        "post rollouts/{rollout_id}/promote",
        "post rollouts/{rollout_id}/promote-fully",
        "post rollouts/{rollout_id}/finish-watch",
    ),
    # The lead opened it.
    *rows_of(ADMINS, 200, "post emergency-reviews/{review_id}/close"),
)
BY_LEADS: Final = (
    *rows_of(LEADS, 204, "delete teams/{slug}/members/{username}"),
    *rows_of(LEADS, 204, "delete teams/{slug}/delegations/{delegation_id}"),
    *rows_of(LEADS, 200, "put teams/{slug}/members/{username}", "put teams/{slug}/rollout-limit"),
    *rows_of(
        LEADS, 200, "put teams/{slug}/load-tests", "put teams/{slug}/environments/{environment}"
    ),
    *rows_of(LEADS, 200, "post alerts/{alert_id}/silence"),
    *rows_of(LEADS, 409, "post alerts/{alert_id}/unsilence"),
    *rows_of(LEADS, 200, "get teams/{slug}/service-accounts"),
    *rows_of(
        LEADS,
        201,
        "post teams/{slug}/service-accounts",
        "post teams/{slug}/service-accounts/{account}/rotate",
    ),
    *rows_of(LEADS, 204, "delete teams/{slug}/service-accounts/{account}"),
    *rows_of(
        LEADS,
        201,
        "post deployments/{deployment_id}/callers",
        "post deployments/{deployment_id}/callers/{key_id}/rotate",
        "post teams/{slug}/deployment-presets",
    ),
    *rows_of(LEADS, 204, "delete teams/{slug}/deployment-presets/{preset_id}"),
    *rows_of(
        LEADS,
        200,
        "post deployments/{deployment_id}/callers/{key_id}/limit",
        "post deployments/{deployment_id}/callers/{key_id}/revoke",
    ),
    # An admin has no place of a lead to hand over.
    *rows_of("lead", 201, "post teams/{slug}/delegations"),
)
# Nodes belong to no team: the stranger leads one too.
OF_ONESELF: Final = (
    *rows_of(EVERYONE, 422, "post me/tokens"),
    # The token is the admin's: of everybody else's tokens it is none.
    *rows_of(
        ADMINS,
        204,
        "delete me/tokens/{token_id}",
        others=dict.fromkeys(["stranger", "viewer", "member", "delegate", "lead"], 404),
    ),
)
