"""Check that versions have the signatures and the provenance that signing rules require."""

from __future__ import annotations

from collections.abc import Sequence

from deployments.attestations.selectors import attestations
from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check


def check_signed(served: Sequence[ModelVersion], *, environment: str) -> list[Check]:
    """Check the attestations of all models of the revision together. Empty where no rule holds."""
    results = [(row, attestations.shortfalls(row, environment=environment)) for row in served]
    if all(lacks is None for _, lacks in results):
        return []
    problems = [
        f"{row.label} {lack.problem} (rule “{lack.rule}”)"
        for row, lacks in results
        for lack in lacks or ()
    ]
    if problems:
        fix = (
            "Add the signature or the provenance on the version's page, or choose a signed version."
        )
        return [Check("Signed", ok=False, detail=f"{'; '.join(problems)}.", fix=fix)]
    labels = ", ".join(row.label for row, _ in results)
    return [Check("Signed", ok=True, detail=f"{labels}: signed as the signing rules require.")]
