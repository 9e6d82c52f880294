"""The bucket of the registry, made fit for it at set-up."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from deployments.gateways import artifacts, bucket_setup
from deployments.services.artifact_access import told


def ensure_bucket(*, origins: Sequence[str]) -> None:
    """Make the bucket if there is none, keep object versions, let the portal's pages send parts.

    `origins` are the portal's addresses as browsers write them. Safe to repeat.
    """
    with told():
        bucket_setup.prepare(
            artifacts.s3_store(), region=settings.SLIPWAY_S3_REGION, origins=origins
        )
