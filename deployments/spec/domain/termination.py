"""How long pods may take to end after they are deleted: at a step of a rollout, at a scale-in and at a drain."""

from __future__ import annotations

from typing import Final

from deployments.spec.domain.engines import LLM_ENGINES

LANGUAGE_MODEL_SECONDS: Final = 600
# Longer than Triton's own exit timeout, and shorter than the two minutes' notice of a spot node.
OTHER_SECONDS: Final = 35
FEWEST_SECONDS: Final = 20
MOST_SECONDS: Final = 3600


def default_seconds(engine: str) -> int:
    """A generated text takes minutes, an inference less than a second. 0: as pods always ended."""
    return LANGUAGE_MODEL_SECONDS if engine in LLM_ENGINES else 0
