"""Which writing pages and operations ask for step-up. A new one belongs into one of these lists."""

from __future__ import annotations

from typing import Final


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.strip().splitlines())


# They make or change who decides, or what somebody signs in, calls or connects with.
_MAKES_DECIDERS_OR_CREDENTIALS: Final = """
    POST account/second-factor/start
    POST account/tokens
    POST admin/clusters/<int:cluster_id>/edit
    POST admin/clusters/new
    POST admin/environments/<slug:environment>
    POST admin/invitations
    POST admin/people/<str:username>/connect
    POST admin/people/<str:username>/password-link
    POST admin/people/<str:username>/reactivate
    POST admin/people/<str:username>/second-factor/remove
    POST admin/policy
    POST admin/policy/<int:rule_id>
    POST admin/policy/<int:rule_id>/delete
    POST admin/policy/<int:rule_id>/switch
    POST admin/provisioning
    POST admin/signing/identities
    POST admin/signing/roots
    POST admin/signing/roots/<int:root_id>
    POST admin/signing/rules
    POST admin/signing/rules/<int:signing_rule_id>/delete
    POST admin/signing/signers
    POST admin/teams/<slug:slug>/environments/<slug:environment>
    POST admin/teams/<str:slug>/delegates
    POST admin/teams/<str:slug>/delivery
    POST admin/teams/<str:slug>/invitations
    POST admin/teams/<str:slug>/members
    POST admin/teams/<str:slug>/members/<str:username>/remove
    POST admin/teams/<str:slug>/service-accounts
    POST admin/teams/<str:slug>/service-accounts/<str:account>/rotate
    POST admin/token-issuers
    POST <slug:team>/deployments/<slug:name>/callers
    POST <slug:team>/deployments/<slug:name>/try/key
    delete approval-rules/{rule_id}
    delete signing-rules/{signing_rule_id}
    delete teams/{slug}/members/{username}
    post approval-rules
    post clusters
    post deployments/{deployment_id}/callers
    post deployments/{deployment_id}/callers/{key_id}/rotate
    post me/tokens
    post signing-rules
    post teams/{slug}/delegations
    post teams/{slug}/service-accounts
    post teams/{slug}/service-accounts/{account}/rotate
    post token-issuers
    post trust-roots
    post trusted-signers
    put approval-rules/{rule_id}
    put environments/{environment}
    put teams/{slug}/environments/{environment}
    put teams/{slug}/members/{username}
    put trust-roots/{root_id}
"""
# Decisions that cannot be taken back.
_DECIDES: Final = """
    POST <slug:team>/models/<slug:name>/<int:number>/release
    post batch-jobs/{job_id}/approve
    post changes/{change_id}/approve
    post changes/{change_id}/approve-in-emergency
    post emergency-reviews/{review_id}/close
    post fleet-actions/{action_id}/approve
    post pipeline-changes/{pipeline_change_id}/approve
    post pipeline-changes/{pipeline_change_id}/approve-in-emergency
    post rollouts/{rollout_id}/finish-watch
    post rollouts/{rollout_id}/promote
    post rollouts/{rollout_id}/promote-fully
    post versions/{version_id}/release
"""
# Some of their choices ask: tests/deployments/pages/test_step_up.py.
_ASKS_FOR_SOME_CHOICES: Final = """
    POST approvals/<int:change_id>
    POST <slug:team>/batch/<slug:name>
    POST decisions/<int:link_id>
    POST <slug:team>/deployments/<slug:name>/rollout
    POST fleet/actions/<int:action_id>
"""
# Requests, uploads, and what takes a credential or a right away: that must never wait.
_NOT_ASKED: Final = """
    POST admin
    POST admin/clusters/<int:cluster_id>/delete
    POST admin/clusters/<int:cluster_id>/serving
    POST admin/clusters/<int:cluster_id>/test
    POST admin/invitations/<int:invitation_id>/revoke
    POST admin/people/<str:username>/deactivate
    POST admin/prices/<int:price_id>/remove
    POST admin/prices/enter
    POST admin/prices/import
    POST admin/prices/load
    POST admin/prices/refresh
    POST admin/provisioning/<int:token_id>/revoke
    POST admin/signing/roots/<int:root_id>/remove
    POST admin/signing/signers/<int:signer_id>/remove
    POST admin/teams/<slug:slug>/deployment-presets/<int:preset_id>/remove
    POST admin/teams/<slug:slug>/load-tests
    POST admin/teams/<slug:slug>/rollout-limit
    POST admin/teams/<slug:slug>/rollout-templates/<int:template_id>/remove
    POST admin/teams/<slug:slug>/rollout-templates/edit
    POST admin/teams/<str:slug>/delegates/<int:delegation_id>/end
    POST admin/teams/<str:slug>/delivery/test
    POST admin/teams/<str:slug>/limits
    POST admin/teams/<str:slug>/notifications
    POST admin/teams/<str:slug>/service-accounts/<str:account>/revoke
    POST admin/token-issuers/<int:token_issuer_id>/remove
    POST advice/<int:item_id>/dismiss
    POST advice/<int:item_id>/reopen
    POST advice/<int:item_id>/request
    POST advice/<int:item_id>/snooze
    POST alerts/<int:alert_id>/silence
    POST alerts/<int:alert_id>/unsilence
    POST <slug:team>/batch/new
    POST channels/<int:channel_id>
    POST channels/<int:channel_id>/remove
    POST channels/<int:channel_id>/test
    POST <slug:team>/deployments/<slug:name>/canary
    POST <slug:team>/deployments/<slug:name>/drift
    POST <slug:team>/deployments/<slug:name>/quality
    POST <slug:team>/deployments/<slug:name>/retire
    POST <slug:team>/deployments/<slug:name>/roll-back
    POST <slug:team>/deployments/<slug:name>/scale
    POST <slug:team>/deployments/<slug:name>/start
    POST <slug:team>/deployments/<slug:name>/stop
    POST <slug:team>/deployments/<slug:name>/targets
    POST <slug:team>/deployments/<slug:name>/try
    POST <slug:team>/deployments/drafts/<str:key>/delete
    POST <slug:team>/deployments/new
    POST fleet/clusters/<int:cluster_id>/node-classes/new
    POST fleet/clusters/<int:cluster_id>/node-classes/of/<str:name>
    POST fleet/clusters/<int:cluster_id>/node-groups/<str:name>
    POST fleet/clusters/<int:cluster_id>/office-hours/<slug:kind>/<str:name>
    POST fleet/clusters/<int:cluster_id>/pools/new
    POST fleet/clusters/<int:cluster_id>/pools/of/<slug:name>
    POST fleet/nodes/<int:node_id>/cordon
    POST fleet/nodes/<int:node_id>/drain
    POST fleet/nodes/<int:node_id>/gpu-sharing
    POST fleet/nodes/<int:node_id>/mig
    POST fleet/nodes/<int:node_id>/uncordon
    POST <slug:team>/import
    POST <slug:team>/imports/<int:import_id>/cancel
    POST <slug:team>/imports/<int:import_id>/resume
    POST <slug:team>/models/<slug:name>/<int:number>/alias
    POST <slug:team>/models/<slug:name>/<int:number>/archive
    POST <slug:team>/models/<slug:name>/<int:number>/attestations
    POST <slug:team>/models/<slug:name>/<int:number>/attestations/<int:attestation_id>/remove
    POST <slug:team>/models/<slug:name>/<int:number>/declare
    POST <slug:team>/models/<slug:name>/<int:number>/discard
    POST <slug:team>/models/<slug:name>/<int:number>/metadata
    POST <slug:team>/models/<slug:name>/<int:number>/restore
    POST <slug:team>/models/<slug:name>/<int:number>/stop
    POST <slug:team>/models/<slug:name>/edit
    POST <slug:team>/models/<slug:name>/golden-requests
    POST <slug:team>/models/<slug:name>/golden-requests/<int:golden_id>/delete
    POST <slug:team>/models/<slug:name>/golden-requests/new
    POST <slug:team>/pipelines/<slug:name>/change
    POST <slug:team>/pipelines/<slug:name>/retire
    POST <slug:team>/pipelines/<slug:name>/start
    POST <slug:team>/pipelines/<slug:name>/stop
    POST <slug:team>/pipelines/<slug:name>/try
    POST <slug:team>/pipelines/new
    POST <slug:team>/register
    POST admin/dismissed
    POST admin/dismissed/restore
    POST <team:team>/dismissed
    POST <team:team>/dismissed/restore
    delete clusters/{cluster_id}
    delete deployment-presets/{preset_id}
    delete deployments/{deployment_id}/targets/{metric}
    delete golden-requests/{golden_id}
    delete me/tokens/{token_id}
    delete models/{team}/{name}/aliases/{alias}
    delete teams/{slug}/delegations/{delegation_id}
    delete teams/{slug}/deployment-presets/{preset_id}
    delete teams/{slug}/rollout-templates/{template_id}
    delete teams/{slug}/service-accounts/{account}
    delete token-issuers/{token_issuer_id}
    delete trust-roots/{root_id}
    delete trusted-signers/{signer_id}
    delete versions/{version_id}/attestations/{attestation_id}
    patch models/{team}/{name}
    patch teams/{slug}
    patch versions/{version_id}
    post advice/{item_id}/dismiss
    post advice/{item_id}/reopen
    post advice/{item_id}/request
    post advice/{item_id}/snooze
    post alerts/{alert_id}/silence
    post alerts/{alert_id}/unsilence
    post batch-jobs
    post batch-jobs/check
    post batch-jobs/{job_id}/cancel
    post batch-jobs/{job_id}/reject
    post batch-jobs/{job_id}/resume
    post batch-uploads
    post batch-uploads/{upload_id}/complete
    post batch-uploads/{upload_id}/parts
    post changes/{change_id}/comments
    post changes/{change_id}/reject
    post changes/{change_id}/withdraw
    post clusters/{cluster_id}/node-classes
    post clusters/{cluster_id}/node-classes/{node_class}
    post clusters/{cluster_id}/node-groups/{group}
    post clusters/{cluster_id}/node-pools
    post clusters/{cluster_id}/node-pools/{pool}
    post clusters/{cluster_id}/office-hours/{kind}/{pool}
    post clusters/{cluster_id}/office-hours/{kind}/{pool}/end
    post clusters/{cluster_id}/test
    post deployment-presets
    post deployments
    post deployments/preflight
    post deployments/{deployment_id}/callers/{key_id}/limit
    post deployments/{deployment_id}/callers/{key_id}/revoke
    post deployments/{deployment_id}/changes
    post deployments/{deployment_id}/changes/preflight
    post deployments/{deployment_id}/drift/adopt
    post deployments/{deployment_id}/drift/re-apply
    post deployments/{deployment_id}/observations
    post deployments/{deployment_id}/rollout-figures
    post fleet-actions/{action_id}/cancel
    post fleet-actions/{action_id}/reject
    post fleet-actions/{action_id}/withdraw
    post imports/{import_id}/cancel
    post imports/{import_id}/resume
    post models
    post models/{team}/{name}/golden-requests
    post models/{team}/{name}/imports
    post models/{team}/{name}/references
    post models/{team}/{name}/versions
    post nodes/{node_id}/cordon
    post nodes/{node_id}/drain
    post nodes/{node_id}/gpu-sharing
    post nodes/{node_id}/mig
    post nodes/{node_id}/uncordon
    post pipeline-changes/{pipeline_change_id}/comments
    post pipeline-changes/{pipeline_change_id}/reject
    post pipeline-changes/{pipeline_change_id}/withdraw
    post pipelines
    post pipelines/preview
    post pipelines/{pipeline_id}/request-stop
    post pipelines/{pipeline_id}/retire
    post pipelines/{pipeline_id}/start
    post pipelines/{pipeline_id}/stop
    post prices
    post rollouts/{rollout_id}/abort
    post rollouts/{rollout_id}/pause
    post rollouts/{rollout_id}/unpause
    post sizing
    post teams
    post teams/{slug}/deployment-presets
    post teams/{slug}/rollout-templates
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
    post versions/{version_id}/triton-config
    put clusters/{cluster_id}/serving
    put deployments/{deployment_id}/drift
    put deployments/{deployment_id}/health
    put deployments/{deployment_id}/targets/{metric}
    put models/{team}/{name}/aliases/{alias}
    put pipelines/{pipeline_id}
    put teams/{slug}/load-tests
    put teams/{slug}/rollout-limit
"""
DECIDES: Final = _lines(_DECIDES)
ASKED: Final = _lines(_MAKES_DECIDERS_OR_CREDENTIALS) | DECIDES
ASKS_FOR_SOME_CHOICES: Final = _lines(_ASKS_FOR_SOME_CHOICES)
# They ask for the password, a code or a link themselves, or end what is one's own.
_PROVES_ANOTHER_WAY: Final = frozenset(
    f"POST {page}"
    for page in (
        "account/notifications",
        "account/password",
        "account/second-factor",
        "account/second-factor/codes",
        "account/second-factor/passkeys",
        "account/second-factor/passkeys/begin",
        "account/second-factor/passkeys/remove",
        "account/second-factor/remove",
        "account/sessions/<slug:name>/end",
        "account/sessions/end-others",
        "account/tokens/<int:token_id>/revoke",
        "confirm",
        "invitation",
        "password-link",
        "sign-in",
        "sign-in/code",
        "sign-in/forgotten",
        "sign-out",
        "theme",
    )
) | {"PUT sign-in"}
NOT: Final = _PROVES_ANOTHER_WAY | _lines(_NOT_ASKED)
