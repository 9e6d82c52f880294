"""The rows of the API. Bodies are those of tests/portal/api/every_operation.py."""

from __future__ import annotations

from typing import Any, Final

from tests.portal.api.every_operation import BODIES
from tests.portal.permissions.matrix import ADMINS, DECIDERS, EVERYONE, LEADS, MEMBERS, TEAM, Row


def _rows(allowed: str, ok: int, *keys: str, **more: Any) -> tuple[Row, ...]:
    return tuple(Row(key, allowed, ok=ok, body=BODIES.get(key, {}), **more) for key in keys)


READ_BY_EVERYONE: Final = _rows(
    EVERYONE,
    200,
    "get advice",
    "get alerts",
    "get approval-rules",
    "get batch-jobs",
    "get changes",
    "get clusters",
    "get clusters/{cluster_id}",
    "get clusters/{cluster_id}/node-classes",
    "get clusters/{cluster_id}/node-groups",
    "get clusters/{cluster_id}/node-pools",
    "get clusters/{cluster_id}/office-hours",
    "get clusters/{cluster_id}/shares",
    "get costs",
    "get costs.csv",
    "get costs/ledger.csv",
    "get costs/series",
    "get costs/unusual-days",
    "get deployments",
    "get emergency-reviews",
    "get fleet-actions",
    "get fleet-actions/{action_id}",
    "get environments",
    "get imports",
    "get me",
    "get me/tokens",
    "get mlflow-servers",
    "get models",
    "get nodes",
    "get nodes/{node_id}",
    "get nodes/{node_id}/hours",
    "get nodes/{node_id}/starts",
    "get nodes/{node_id}/utilisation",
    "get pipeline-changes",
    "get pipelines",
    "get pods",
    "get prices",
    "get signing-rules",
    "get teams",
    "get trusted-signers",
    "get usage",
    "get versions",
    "get versions/facets",
    "get versions/quarantined-in-use",
)
# It serves in production, the last environment.
READ_WHERE_IT_CAN: Final = _rows(TEAM, 409, "get deployments/{deployment_id}/promotion")
READ_BY_THE_TEAM: Final = _rows(
    TEAM,
    200,
    "get alerts/{alert_id}",
    "get changes/{change_id}",
    "get changes/{change_id}/checks",
    "get versions/{version_id}/attestations",
    "get versions/{version_id}/attestations/{attestation_id}",
    "get deployments/{deployment_id}",
    "get deployments/{deployment_id}/callers",
    "get deployments/{deployment_id}/drift",
    "get deployments/{deployment_id}/events",
    "get batch-jobs/{job_id}",
    "get deployments/{deployment_id}/health",
    "get deployments/{deployment_id}/health/history",
    "get deployments/{deployment_id}/logs",
    "get deployments/{deployment_id}/revisions",
    "get deployments/{deployment_id}/stats",
    "get deployments/{deployment_id}/targets",
    "get golden-requests/{golden_id}",
    "get imports/{import_id}",
    "get models/{team}/{name}",
    "get models/{team}/{name}/aliases",
    "get models/{team}/{name}/aliases/{alias}",
    "get models/{team}/{name}/golden-requests",
    "get models/{team}/{name}/versions",
    "get models/{team}/{name}/versions/{number}",
    "get pipeline-changes/{pipeline_change_id}",
    "get pipeline-changes/{pipeline_change_id}/checks",
    "get pipelines/{pipeline_id}",
    "get rollouts/{rollout_id}",
    "get rollouts/{rollout_id}/before-traffic",
    "get rollouts/{rollout_id}/events",
    "get teams/{slug}",
    "get teams/{slug}/caller-costs",
    "get teams/{slug}/delegations",
    "get teams/{slug}/load-tests",
    "get teams/{slug}/members",
    "get teams/{slug}/rollout-limit",
    "get teams/{slug}/rollout-templates",
    "get versions/{version_id}",
    "get versions/{version_id}/files",
    "get versions/{version_id}/starts",
)
# No server is configured here; who may upload nowhere does not learn that.
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
CONVERTED_BY_THE_TEAM: Final = _rows(TEAM, 422, "post versions/{version_id}/triton-config")
BY_MEMBERS: Final = (
    *_rows(
        MEMBERS,
        200,
        "patch models/{team}/{name}",
        "patch versions/{version_id}",
        "post advice/{item_id}/dismiss",
        "post advice/{item_id}/snooze",
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
    *_rows(
        MEMBERS,
        201,
        "post batch-jobs",
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
    *_rows(
        MEMBERS,
        204,
        "delete deployments/{deployment_id}/targets/{metric}",
        "delete golden-requests/{golden_id}",
        "delete teams/{slug}/rollout-templates/{template_id}",
        "delete versions/{version_id}/attestations/{attestation_id}",
    ),
    *_rows(MEMBERS, 200, "put models/{team}/{name}/aliases/{alias}", named={"alias": "staging"}),
    *_rows(MEMBERS, 204, "delete models/{team}/{name}/aliases/{alias}", named={"alias": "staging"}),
    *_rows(MEMBERS, 422, "post sizing"),
    # Allowed, but not in the state that these are in.
    *_rows(
        MEMBERS,
        409,
        "get versions/{version_id}/parts",
        "post advice/{item_id}/reopen",
        "post advice/{item_id}/request",
        "post batch-jobs/{job_id}/resume",
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
OF_NOBODY: Final = _rows("", 200, "post deployments/{deployment_id}/stop")
DECISIONS: Final = (
    *_rows(
        DECIDERS,
        409,
        "post batch-jobs/{job_id}/approve",
        "post batch-jobs/{job_id}/reject",
        "post changes/{change_id}/approve",
        "post changes/{change_id}/reject",
        "post pipeline-changes/{pipeline_change_id}/approve",
    ),
    *_rows(DECIDERS, 422, "post pipeline-changes/{pipeline_change_id}/reject"),
    *_rows(
        LEADS,
        409,
        "post changes/{change_id}/approve-in-emergency",
        "post pipeline-changes/{pipeline_change_id}/approve-in-emergency",
        "post rollouts/{rollout_id}/promote",
        "post rollouts/{rollout_id}/promote-fully",
        "post rollouts/{rollout_id}/finish-watch",
    ),
    # The lead opened it.
    *_rows(ADMINS, 200, "post emergency-reviews/{review_id}/close"),
)
BY_LEADS: Final = (
    *_rows(LEADS, 204, "delete teams/{slug}/members/{username}"),
    *_rows(LEADS, 204, "delete teams/{slug}/delegations/{delegation_id}"),
    *_rows(LEADS, 200, "put teams/{slug}/members/{username}", "put teams/{slug}/rollout-limit"),
    *_rows(
        LEADS, 200, "put teams/{slug}/load-tests", "put teams/{slug}/environments/{environment}"
    ),
    *_rows(LEADS, 200, "post alerts/{alert_id}/silence"),
    *_rows(LEADS, 409, "post alerts/{alert_id}/unsilence"),
    *_rows(LEADS, 200, "get teams/{slug}/service-accounts"),
    *_rows(
        LEADS,
        201,
        "post teams/{slug}/service-accounts",
        "post teams/{slug}/service-accounts/{account}/rotate",
    ),
    *_rows(LEADS, 204, "delete teams/{slug}/service-accounts/{account}"),
    *_rows(
        LEADS,
        201,
        "post deployments/{deployment_id}/callers",
        "post deployments/{deployment_id}/callers/{key_id}/rotate",
    ),
    *_rows(
        LEADS,
        200,
        "post deployments/{deployment_id}/callers/{key_id}/limit",
        "post deployments/{deployment_id}/callers/{key_id}/revoke",
    ),
    # An admin has no place of a lead to hand over.
    *_rows("lead", 201, "post teams/{slug}/delegations"),
)
# Nodes belong to no team: the stranger leads one too.
OF_THE_FLEET: Final = (
    *_rows(f"stranger {LEADS}", 200, "get nodes/{node_id}/drain-preview"),
    *_rows(
        f"stranger {LEADS}",
        201,
        "post nodes/{node_id}/cordon",
        "post nodes/{node_id}/drain",
        "post clusters/{cluster_id}/node-classes",
        "post clusters/{cluster_id}/node-pools",
    ),
    # There is none of this name.
    *_rows(
        f"stranger {LEADS}",
        409,
        "post clusters/{cluster_id}/node-classes/{node_class}",
        "post clusters/{cluster_id}/node-pools/{pool}",
        "post clusters/{cluster_id}/node-groups/{group}",
        "post clusters/{cluster_id}/office-hours/{kind}/{pool}",
        "post clusters/{cluster_id}/office-hours/{kind}/{pool}/end",
        named={"pool": "none"},
    ),
    # Its GPUs cannot be cut.
    *_rows(f"stranger {LEADS}", 409, "post nodes/{node_id}/mig"),
    # No device plugin runs on it.
    *_rows(f"stranger {LEADS}", 409, "post nodes/{node_id}/gpu-sharing"),
    # It is not cordoned.
    *_rows(f"stranger {LEADS}", 409, "post nodes/{node_id}/uncordon"),
    # The lead requested it, and it is approved already.
    *_rows(LEADS, 200, "post fleet-actions/{action_id}/withdraw", stranger=403),
    *_rows(LEADS, 409, "post fleet-actions/{action_id}/cancel", stranger=403),
    *_rows(
        ADMINS,
        409,
        "post fleet-actions/{action_id}/approve",
        "post fleet-actions/{action_id}/reject",
        stranger=403,
    ),
)
BY_ADMINS: Final = (
    *_rows(ADMINS, 200, "patch teams/{slug}"),
    *_rows(ADMINS, 200, "post prices", stranger=403),
    *_rows(ADMINS, 409, "post versions/{version_id}/release"),
    *_rows(
        ADMINS,
        200,
        "get audit",
        "get clusters/{cluster_id}/serving",
        "post clusters/{cluster_id}/test",
        "put approval-rules/{rule_id}",
        "put clusters/{cluster_id}/serving",
        "put environments/{environment}",
        stranger=403,
    ),
    # Deployments run on it, and no approval was needed for the rule.
    *_rows(ADMINS, 409, "delete clusters/{cluster_id}", stranger=403),
    *_rows(
        ADMINS,
        204,
        "delete approval-rules/{rule_id}",
        "delete signing-rules/{signing_rule_id}",
        "delete trusted-signers/{signer_id}",
        stranger=403,
    ),
    *_rows(
        ADMINS,
        201,
        "post approval-rules",
        "post clusters",
        "post signing-rules",
        "post teams",
        "post trusted-signers",
        stranger=403,
    ),
)
OF_ONESELF: Final = (
    *_rows(EVERYONE, 422, "post me/tokens"),
    # The token is the admin's: of everybody else's tokens it is none.
    *_rows(
        ADMINS,
        204,
        "delete me/tokens/{token_id}",
        others=dict.fromkeys(["stranger", "viewer", "member", "delegate", "lead"], 404),
    ),
)
ROWS: Final = (
    *READ_BY_EVERYONE,
    *READ_BY_THE_TEAM,
    *READ_WHERE_IT_CAN,
    *OF_MLFLOW,
    *CONVERTED_BY_THE_TEAM,
    *BY_MEMBERS,
    *OF_NOBODY,
    *DECISIONS,
    *BY_LEADS,
    *OF_THE_FLEET,
    *BY_ADMINS,
    *OF_ONESELF,
)
