"""Operations of the fleet and of platform admins."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import ADMINS, LEADS
from tests.portal.permissions.operations.rows import rows_of

OF_THE_FLEET: Final = (
    *rows_of(f"stranger {LEADS}", 200, "get nodes/{node_id}/drain-preview"),
    *rows_of(
        f"stranger {LEADS}",
        201,
        "post nodes/{node_id}/cordon",
        "post nodes/{node_id}/drain",
        "post clusters/{cluster_id}/node-classes",
        "post clusters/{cluster_id}/node-pools",
    ),
    # There is none of this name.
    *rows_of(
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
    *rows_of(f"stranger {LEADS}", 409, "post nodes/{node_id}/mig"),
    # No device plugin runs on it.
    *rows_of(f"stranger {LEADS}", 409, "post nodes/{node_id}/gpu-sharing"),
    # It is not cordoned.
    *rows_of(f"stranger {LEADS}", 409, "post nodes/{node_id}/uncordon"),
    # The lead requested it, and it is approved already.
    *rows_of(LEADS, 200, "post fleet-actions/{action_id}/withdraw", stranger=403),
    *rows_of(LEADS, 409, "post fleet-actions/{action_id}/cancel", stranger=403),
    *rows_of(
        ADMINS,
        409,
        "post fleet-actions/{action_id}/approve",
        "post fleet-actions/{action_id}/reject",
        stranger=403,
    ),
)
BY_ADMINS: Final = (
    *rows_of(ADMINS, 200, "patch teams/{slug}"),
    *rows_of(ADMINS, 200, "post prices", stranger=403),
    # This one is a team's.
    *rows_of(ADMINS, 404, "delete deployment-presets/{preset_id}", stranger=403),
    *rows_of(ADMINS, 409, "post versions/{version_id}/release"),
    *rows_of(
        ADMINS,
        200,
        "get audit",
        "get clusters/{cluster_id}/serving",
        "post clusters/{cluster_id}/test",
        "put approval-rules/{rule_id}",
        "put clusters/{cluster_id}/serving",
        "put environments/{environment}",
        "put trust-roots/{root_id}",
        stranger=403,
    ),
    # Deployments run on it, and no approval was needed for the rule.
    *rows_of(ADMINS, 409, "delete clusters/{cluster_id}", stranger=403),
    *rows_of(
        ADMINS,
        204,
        "delete approval-rules/{rule_id}",
        "delete signing-rules/{signing_rule_id}",
        "delete token-issuers/{token_issuer_id}",
        "delete trust-roots/{root_id}",
        "delete trusted-signers/{signer_id}",
        stranger=403,
    ),
    *rows_of(
        ADMINS,
        201,
        "post approval-rules",
        "post clusters",
        "post deployment-presets",
        "post signing-rules",
        "post teams",
        "post token-issuers",
        "post trust-roots",
        "post trusted-signers",
        stranger=403,
    ),
)
