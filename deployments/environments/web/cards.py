"""The evidence of a promotion as a page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from deployments.environments.domain.promotion import Golden


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """A line of the evidence, as the tag `checks` takes it. `ok` is None if it is not known."""

    name: str
    ok: bool | None
    detail: str
    at: datetime | None
    fix: str = ""
    is_blocking: bool = True


@dataclass(frozen=True, slots=True)
class PromotionCard:
    environment: str
    deployment: str
    revision_number: int
    version: str
    identity: str
    lines: tuple[EvidenceCheck, ...]

    @property
    def team(self) -> str:
        return self.deployment.partition("/")[0]

    @property
    def name(self) -> str:
        return self.deployment.partition("/")[2]


_GOLDEN: Mapping[str, bool | None] = {Golden.PASSED: True, Golden.FAILED: False}


def card_of(stored: Mapping[str, Any]) -> PromotionCard | None:
    """Build the card of a stored PromotionEvidence. None if it is empty."""
    if not stored:
        return None
    finished = EvidenceCheck(
        "Rollout", bool(stored["is_finished"]), stored["progress"], _time(stored["finished_at"])
    )
    golden = EvidenceCheck(
        "Golden requests",
        _GOLDEN.get(stored["golden"]),
        stored["golden_detail"],
        _time(stored["golden_at"]),
    )
    return PromotionCard(
        environment=stored["environment"],
        deployment=stored["deployment"],
        revision_number=stored["revision_number"],
        version=stored["version"],
        identity=stored["identity"][-1],
        lines=(finished, golden),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
