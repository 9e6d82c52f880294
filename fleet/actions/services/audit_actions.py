"""The audit vocabulary of fleet actions."""

from __future__ import annotations

from portal.audit.actions import register

REQUESTED = register("fleet_action.requested", "requested the")
APPROVED = register("fleet_action.approved", "approved the")
REJECTED = register("fleet_action.rejected", "rejected the")
WITHDRAWN = register("fleet_action.withdrawn", "withdrew the")
EXPIRED = register("fleet_action.expired", "expired the")
STARTED = register("fleet_action.started", "started the")
CANCELING = register("fleet_action.canceling", "canceled the")
CANCELED = register("fleet_action.canceled", "reverted the canceled")
DONE = register("fleet_action.done", "finished the")
FAILED = register("fleet_action.failed", "recorded the failure of the")
