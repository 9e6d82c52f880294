"""The audit vocabulary of batch jobs."""

from __future__ import annotations

from portal.audit.actions import register

REQUESTED = register("batch.requested", "requested the")
UPLOADED = register("batch.uploaded", "started uploading the rows")
PLANNED = register("batch.planned", "read the input of the")
APPROVED = register("batch.approved", "approved the")
REJECTED = register("batch.rejected", "rejected the")
RESUMED = register("batch.resumed", "resumed the")
STOPPING = register("batch.stopping", "is ending the")
CANCELED = register("batch.canceled", "canceled the")
FAILED = register("batch.failed", "recorded the failure of the")
SUCCEEDED = register("batch.succeeded", "finished the")
