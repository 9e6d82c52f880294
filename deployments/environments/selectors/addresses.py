"""The environment that an address belongs to."""

from __future__ import annotations

from deployments.models import Deployment, Pipeline


def environment_of_address(*, cluster_id: int, namespace: str, name: str) -> str:
    """Return the environment of what last served at the address. Empty if nothing ever did.

    Callers of an address do not learn that something else serves there, so whoever takes the address over stays
    under the same rules.
    """
    place = {"cluster_id": cluster_id, "namespace": namespace, "name": name}
    served = [
        (row.first_ready_at, row.environment)
        for table in (Deployment, Pipeline)
        for row in table.objects.filter(**place, first_ready_at__isnull=False)
        if row.first_ready_at is not None
    ]
    return max(served)[1] if served else ""
