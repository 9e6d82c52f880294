"""Find what requests and rollouts of the audit trail are of."""

from __future__ import annotations

from collections.abc import Collection

from deployments.models import ChangeRequest, Rollout

# A type of the audit trail and an id.
ObjectKey = tuple[str, str]


def find_subjects(keys: Collection[ObjectKey]) -> dict[ObjectKey, ObjectKey]:
    """Return the deployment or pipeline of each request and rollout among the keys."""
    subjects: dict[ObjectKey, ObjectKey] = {}
    if changes := _ids_of(keys, "changerequest"):
        rows = ChangeRequest.objects.filter(pk__in=changes).order_by()
        for pk, deployment, pipeline in rows.values_list("pk", "deployment", "pipeline"):
            subject = ("deployment", deployment) if deployment else ("pipeline", pipeline)
            subjects["changerequest", str(pk)] = subject[0], str(subject[1])
    if rollouts := _ids_of(keys, "rollout"):
        of_rollouts = Rollout.objects.filter(pk__in=rollouts).order_by()
        for pk, deployment in of_rollouts.values_list("pk", "deployment"):
            subjects["rollout", str(pk)] = "deployment", str(deployment)
    return subjects


def _ids_of(keys: Collection[ObjectKey], object_type: str) -> set[int]:
    return {int(pk) for kind, pk in keys if kind == object_type and pk.isdecimal()}
