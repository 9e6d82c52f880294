"""Rows of the ledger that a deployment is charged."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from deployments.models import Deployment
from fleet.models import LedgerRow


def spend(deployment: Deployment, at: datetime, dollars: str) -> None:
    """A sealed hour of its first revision."""
    LedgerRow.objects.create(
        hour=at.astimezone(UTC).replace(minute=0, second=0, microsecond=0),
        cluster_name=deployment.cluster.name,
        node_uid="n1",
        node_name="n1",
        instance_type="g5.xlarge",
        kind="allocated",
        team_slug=deployment.team.slug,
        namespace=deployment.namespace,
        workload_name=f"{deployment.name}-r1",
        workload_labels={"deployment": deployment.name, "revision": "1"},
        gpu_milliseconds=3_600_000,
        cost_amount=Decimal(dollars),
        sealed_at=at,
    )
