"""The rights that an API token needs for each operation of the REST API: a scope, or a person in a browser.

An operation that is missing here is refused to tokens. `policy` still checks the role of the token's owner, as on
pages.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from portal.accounts.scopes import Scope

_PARAMETER: Final = re.compile(r"<(?:\w+:)?(\w+)>")
_PREFIX: Final = "api/v1/"
BROWSER: Final = None

_READ: Final = """
    get advice
    get alerts
    get alerts/{alert_id}
    get approval-rules
    get approvals
    get batch-jobs
    get batch-jobs/{job_id}
    get batch-jobs/{job_id}/parts
    get changes
    get changes/{change_id}
    get changes/{change_id}/checks
    get changes/{change_id}/comments
    get clusters
    get clusters/{cluster_id}
    get clusters/{cluster_id}/node-classes
    get clusters/{cluster_id}/node-groups
    get clusters/{cluster_id}/node-pools
    get clusters/{cluster_id}/office-hours
    get clusters/{cluster_id}/shares
    get costs
    get costs.csv
    get costs/ledger.csv
    get costs/series
    get costs/unusual-days
    get deployment-presets
    get deployments
    get deployments/{deployment_id}
    get deployments/{deployment_id}/callers
    get deployments/{deployment_id}/drift
    get deployments/{deployment_id}/health
    get deployments/{deployment_id}/health/history
    get deployments/{deployment_id}/events
    get deployments/{deployment_id}/logs
    get deployments/{deployment_id}/promotion
    get deployments/{deployment_id}/revisions
    get deployments/{deployment_id}/stats
    get deployments/{deployment_id}/targets
    get emergency-reviews
    get fleet-actions
    get fleet-actions/{action_id}
    get environments
    get golden-requests/{golden_id}
    get imports
    get imports/{import_id}
    get me
    get mlflow-servers
    get models
    get models/{team}/{name}
    get models/{team}/{name}/aliases
    get models/{team}/{name}/aliases/{alias}
    get models/{team}/{name}/golden-requests
    get models/{team}/{name}/versions
    get models/{team}/{name}/versions/{number}
    get nodes
    get nodes/{node_id}
    get nodes/{node_id}/hours
    get nodes/{node_id}/starts
    get nodes/{node_id}/utilisation
    get pipeline-changes
    get pipeline-changes/{pipeline_change_id}
    get pipeline-changes/{pipeline_change_id}/checks
    get pipeline-changes/{pipeline_change_id}/comments
    get pipelines
    get pipelines/{pipeline_id}
    get pods
    get prices
    get rollouts/{rollout_id}
    get rollouts/{rollout_id}/before-traffic
    get rollouts/{rollout_id}/events
    get signing-rules
    get teams
    get token-issuers
    get teams/{slug}
    get teams/{slug}/caller-costs
    get teams/{slug}/delegations
    get teams/{slug}/deployment-presets
    get teams/{slug}/load-tests
    get teams/{slug}/members
    get teams/{slug}/rollout-limit
    get teams/{slug}/rollout-templates
    get trust-roots
    get trust-roots/{root_id}
    get trusted-signers
    get trusted-signers/{signer_id}
    get usage
    get versions
    get versions/facets
    get versions/quarantined-in-use
    get versions/{version_id}
    get versions/{version_id}/attestations
    get versions/{version_id}/attestations/{attestation_id}
    get versions/{version_id}/files
    get versions/{version_id}/starts
    post versions/{version_id}/triton-config
"""
_UPLOAD: Final = """
    delete golden-requests/{golden_id}
    delete models/{team}/{name}/aliases/{alias}
    delete versions/{version_id}/attestations/{attestation_id}
    get mlflow-servers/{server}/models
    get mlflow-servers/{server}/versions
    get versions/{version_id}/parts
    patch models/{team}/{name}
    patch versions/{version_id}
    post imports/{import_id}/cancel
    post imports/{import_id}/resume
    post models
    post models/{team}/{name}/golden-requests
    post models/{team}/{name}/imports
    post models/{team}/{name}/references
    post models/{team}/{name}/versions
    post versions/preview
    post versions/{version_id}/abandon
    post versions/{version_id}/archive
    post versions/{version_id}/attestations
    post versions/{version_id}/complete
    post versions/{version_id}/declare
    post versions/{version_id}/discard
    post versions/{version_id}/files/complete
    post versions/{version_id}/parts
    post versions/{version_id}/restore
    post versions/{version_id}/stop
    put models/{team}/{name}/aliases/{alias}
"""
_REQUEST: Final = """
    delete deployments/{deployment_id}/targets/{metric}
    delete teams/{slug}/rollout-templates/{template_id}
    get nodes/{node_id}/drain-preview
    post advice/{item_id}/dismiss
    post advice/{item_id}/reopen
    post advice/{item_id}/request
    post advice/{item_id}/snooze
    post batch-jobs
    post batch-jobs/check
    get batch-uploads/{upload_id}/files
    get batch-uploads/{upload_id}/parts
    post batch-jobs/{job_id}/resume
    post batch-uploads
    post batch-uploads/{upload_id}/complete
    post batch-uploads/{upload_id}/parts
    post changes/{change_id}/comments
    post changes/{change_id}/withdraw
    post clusters/{cluster_id}/node-classes
    post clusters/{cluster_id}/node-classes/{node_class}
    post clusters/{cluster_id}/node-groups/{group}
    post clusters/{cluster_id}/node-pools
    post clusters/{cluster_id}/node-pools/{pool}
    post clusters/{cluster_id}/office-hours/{kind}/{pool}
    post clusters/{cluster_id}/office-hours/{kind}/{pool}/end
    post deployments
    post deployments/preflight
    post deployments/{deployment_id}/changes
    post deployments/{deployment_id}/changes/preflight
    post deployments/{deployment_id}/drift/adopt
    post deployments/{deployment_id}/drift/re-apply
    post deployments/{deployment_id}/observations
    post deployments/{deployment_id}/rollout-figures
    post fleet-actions/{action_id}/cancel
    post fleet-actions/{action_id}/withdraw
    post nodes/{node_id}/cordon
    post nodes/{node_id}/drain
    post nodes/{node_id}/mig
    post nodes/{node_id}/gpu-sharing
    post nodes/{node_id}/uncordon
    post pipeline-changes/{pipeline_change_id}/comments
    post pipeline-changes/{pipeline_change_id}/withdraw
    post pipelines
    post pipelines/preview
    post pipelines/{pipeline_id}/request-stop
    post pipelines/{pipeline_id}/retire
    post pipelines/{pipeline_id}/start
    post sizing
    post teams/{slug}/rollout-templates
    put deployments/{deployment_id}/drift
    put deployments/{deployment_id}/health
    put deployments/{deployment_id}/targets/{metric}
    put pipelines/{pipeline_id}
"""
_DECIDE: Final = """
    delete teams/{slug}/deployment-presets/{preset_id}
    post alerts/{alert_id}/silence
    post alerts/{alert_id}/unsilence
    post batch-jobs/{job_id}/approve
    post batch-jobs/{job_id}/cancel
    post batch-jobs/{job_id}/reject
    post changes/{change_id}/approve
    post changes/{change_id}/reject
    post deployments/{deployment_id}/callers
    post deployments/{deployment_id}/callers/{key_id}/limit
    post deployments/{deployment_id}/callers/{key_id}/revoke
    post deployments/{deployment_id}/callers/{key_id}/rotate
    post deployments/{deployment_id}/stop
    post fleet-actions/{action_id}/approve
    post fleet-actions/{action_id}/reject
    post pipeline-changes/{pipeline_change_id}/approve
    post pipeline-changes/{pipeline_change_id}/reject
    post pipelines/{pipeline_id}/stop
    post rollouts/{rollout_id}/abort
    post rollouts/{rollout_id}/finish-watch
    post rollouts/{rollout_id}/pause
    post rollouts/{rollout_id}/promote
    post rollouts/{rollout_id}/promote-fully
    post rollouts/{rollout_id}/unpause
    post teams/{slug}/deployment-presets
"""
# Administration, tokens themselves, and what bypasses the rules.
_BROWSER: Final = """
    delete approval-rules/{rule_id}
    delete clusters/{cluster_id}
    delete deployment-presets/{preset_id}
    delete me/tokens/{token_id}
    delete signing-rules/{signing_rule_id}
    delete teams/{slug}/delegations/{delegation_id}
    delete teams/{slug}/members/{username}
    delete teams/{slug}/service-accounts/{account}
    delete token-issuers/{token_issuer_id}
    delete trust-roots/{root_id}
    delete trusted-signers/{signer_id}
    get audit
    get clusters/{cluster_id}/serving
    get me/tokens
    get teams/{slug}/service-accounts
    patch teams/{slug}
    post approval-rules
    post changes/{change_id}/approve-in-emergency
    post clusters
    post clusters/{cluster_id}/test
    post deployment-presets
    post emergency-reviews/{review_id}/close
    post me/tokens
    post pipeline-changes/{pipeline_change_id}/approve-in-emergency
    post prices
    post signing-rules
    post teams
    post teams/{slug}/delegations
    post teams/{slug}/service-accounts
    post teams/{slug}/service-accounts/{account}/rotate
    post token-issuers
    post trust-roots
    post trusted-signers
    post versions/{version_id}/release
    put approval-rules/{rule_id}
    put clusters/{cluster_id}/serving
    put environments/{environment}
    put teams/{slug}/environments/{environment}
    put teams/{slug}/load-tests
    put trust-roots/{root_id}
    put teams/{slug}/members/{username}
    put teams/{slug}/rollout-limit
"""


def _keys(text: str, scope: Scope | None) -> dict[str, Scope | None]:
    return dict.fromkeys((line.strip() for line in text.strip().splitlines()), scope)


OPERATIONS: Final[dict[str, Scope | None]] = {
    **_keys(_READ, Scope.READ),
    **_keys(_UPLOAD, Scope.UPLOAD),
    **_keys(_REQUEST, Scope.REQUEST),
    **_keys(_DECIDE, Scope.DECIDE),
    **_keys(_BROWSER, BROWSER),
}


@lru_cache(maxsize=512)
def scope_of(method: str, route: str) -> Scope | None:
    """Return the scope for a method of a route as the URL resolver has it. None if no token may call it."""
    if method == "OPTIONS":
        return Scope.READ
    name = "get" if method == "HEAD" else method.lower()
    path = _PARAMETER.sub(r"{\1}", route.removeprefix(_PREFIX))
    return OPERATIONS.get(f"{name} {path}", BROWSER)
