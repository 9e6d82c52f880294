"""The evidence of a version in an earlier environment, which a promotion carries along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Golden(StrEnum):
    """The result of the model's golden requests for the version. NONE means that the model has none."""

    PASSED = "passed"
    NOT_RUN = "not run"
    NONE = "none"
    FAILED = "failed"


_PREFERENCE = (Golden.FAILED, Golden.NONE, Golden.NOT_RUN, Golden.PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionEvidence:
    """The evidence of one revision with the same version. `rollout_id` is None if it was the first of its
    deployment.
    """

    environment: str
    deployment_id: int
    deployment: str
    revision_id: int
    revision_number: int
    version: str
    # Bucket, key and SHA-256 of the files, or the address of the weights.
    identity: tuple[str, ...]
    rollout_id: int | None
    # Whether all requests went to it and its watch ended, or the first deployment became ready.
    is_finished: bool
    progress: str
    finished_at: datetime | None
    golden: Golden
    golden_detail: str
    golden_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        for name in ("finished_at", "golden_at"):
            at = values[name]
            values[name] = at.isoformat() if at is not None else None
        return {**values, "identity": list(self.identity), "golden": self.golden.value}


def best_of(rows: Iterable[PromotionEvidence]) -> PromotionEvidence | None:
    """Return the evidence that shows most: finished before unfinished, then by golden requests, then the newest."""
    return max(
        rows,
        key=lambda row: (row.is_finished, _PREFERENCE.index(row.golden), row.revision_id),
        default=None,
    )


def bound_part(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the evidence (as JSON) that an approval binds to: no text or time that changes by itself.

    Golden requests that pass later make nothing worse; ones that fail later are other evidence.
    """
    if not stored:
        return {}
    names = ("environment", "deployment_id", "revision_id", "identity", "rollout_id", "is_finished")
    has_failed = stored["golden"] == Golden.FAILED
    return {**{name: stored[name] for name in names}, "has_failed_golden": has_failed}
