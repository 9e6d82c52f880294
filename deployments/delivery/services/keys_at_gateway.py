"""Record how far a gateway has the keys and limits of callers."""

from __future__ import annotations

from deployments.models import Deployment, KeysAtGateway
from portal.core import clock


def note_written(deployment: Deployment) -> None:
    """The keys as they were when the row was read. Never older ones than are noted already."""
    generation = deployment.caller_keys_generation
    KeysAtGateway.objects.filter(deployment=deployment, written_generation__lte=generation).exclude(
        problem="", written_generation=generation
    ).update(written_generation=generation, written_at=clock.now(), problem="", is_limit=False)


def note_refused(deployment: Deployment, problem: str, *, is_limit: bool) -> None:
    KeysAtGateway.objects.update_or_create(
        deployment=deployment,
        defaults={"problem": problem, "is_limit": is_limit},
        create_defaults={
            "problem": problem,
            "is_limit": is_limit,
            "changed_at": clock.now(),
        },
    )
