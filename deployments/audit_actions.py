"""The audit vocabulary of delivery."""

from __future__ import annotations

from portal.audit.actions import register

CHANGE_REQUESTED = register("change.requested", "requested")
CHANGE_APPROVED = register("change.approved", "approved")
APPROVAL_GIVEN = register("change.approval_given", "gave one approval to")
APPROVED_IN_EMERGENCY = register(
    "change.approved_in_emergency", "approved with an emergency override"
)
EMERGENCY_REVIEWED = register("change.emergency_reviewed", "reviewed the emergency override of")
CHANGE_REJECTED = register("change.rejected", "rejected")
CHANGE_WITHDRAWN = register("change.withdrawn", "withdrew")
CHANGE_EXPIRED = register("change.expired", "expired")
APPROVAL_VOIDED = register("change.approval_voided", "voided the approval of")
CHANGE_REOPENED = register("change.reopened", "sent back to its approvers")
CHANGE_APPLYING = register("change.applying", "started to apply")
CHANGE_DONE = register("change.done", "finished")
CHANGE_FAILED = register("change.failed", "failed to apply")
DEPLOYMENT_STATE = register("deployment.state_changed", "recorded a state change of")
BYTES_DIFFER = register("deployment.bytes_differ", "detected changed serving files of")
BYTES_AS_APPROVED = register(
    "deployment.bytes_as_approved", "confirmed the approved serving files again for"
)
DEPLOYMENT_STOPPED = register("deployment.stopped", "stopped")
DEPLOYMENT_RETIRED = register("deployment.retired", "retired")
CALLER_KEY_CREATED = register("caller_key.created", "created a key for")
CALLER_KEY_ROTATED = register("caller_key.rotated", "rotated a key of")
CALLER_KEY_REVOKED = register("caller_key.revoked", "revoked a key of")
CALLER_KEY_LIMITED = register("caller_key.limited", "changed the limit of a key of")
CALLER_KEY_EXPIRED = register("caller_key.expired", "ended the expired key of")
TOKEN_ISSUER_ADDED = register("token_issuer.added", "registered the token issuer")
TOKEN_ISSUER_REMOVED = register("token_issuer.removed", "removed the token issuer")
HEALTH_SWITCHED = register("deployment.health_switched", "switched the quality watch of")
ALERT_SILENCED = register("alert.silenced", "silenced the alert")
ALERT_UNSILENCED = register("alert.unsilenced", "ended the silence of the alert")
TARGET_SET = register("deployment.target_set", "set a standing target of")
TARGET_REMOVED = register("deployment.target_removed", "removed a standing target of")
SAFEGUARD_REQUESTED = register(
    "deployment.safeguard_requested", "requested to take a safeguard away from"
)
SAFEGUARD_APPROVED = register(
    "deployment.safeguard_approved", "approved to take a safeguard away from"
)
DRIFT_POLICY = register("deployment.drift_policy", "set the drift policy of")
DRIFT_RE_APPLIED = register("deployment.drift_re_applied", "reverted drift of")
ROLLOUT_STARTED = register("rollout.started", "started the rollout of")
ROLLOUT_MOVED = register("rollout.moved", "moved the rollout of")
ROLLOUT_PROMOTED = register("rollout.promoted", "promoted")
ROLLOUT_PROMOTED_FULLY = register("rollout.promoted_fully", "promoted fully")
ROLLOUT_WATCH_ENDED = register("rollout.watch_ended", "ended the watch of")
ROLLOUT_PAUSED = register("rollout.paused", "paused")
ROLLOUT_UNPAUSED = register("rollout.unpaused", "resumed")
ROLLOUT_ABORTED = register("rollout.aborted", "aborted")
RULE_MADE = register("approval_rule.made", "created the approval rule")
ENVIRONMENT_CHANGED = register("environment.changed", "changed the rules of environment")
RULE_DELETED = register("approval_rule.deleted", "deleted the approval rule")
RULE_CHANGED = register("approval_rule.changed", "changed the approval rule")
ATTESTATION_ADDED = register("attestation.added", "added the attestation")
ATTESTATION_VERIFIED = register("attestation.verified", "verified the attestation")
ATTESTATION_REMOVED = register("attestation.removed", "removed the attestation")
SIGNER_ADDED = register("trusted_signer.added", "added the trusted signer")
SIGNER_REMOVED = register("trusted_signer.removed", "removed the trusted signer")
ROOT_ADDED = register("trust_root.added", "added the trust root")
ROOT_REPLACED = register("trust_root.replaced", "replaced the trust root")
ROOT_REMOVED = register("trust_root.removed", "removed the trust root")
SIGNING_RULE_MADE = register("signing_rule.made", "created the signing rule")
SIGNING_RULE_DELETED = register("signing_rule.deleted", "deleted the signing rule")
PIPELINE_STATE = register("pipeline.state_changed", "recorded a state change of the pipeline")
PIPELINE_STOPPED = register("pipeline.stopped", "stopped the pipeline")
PIPELINE_RETIRED = register("pipeline.retired", "retired the pipeline")
PIPELINE_DRIFT_REVERTED = register("pipeline.drift_reverted", "reverted drift of the pipeline")
