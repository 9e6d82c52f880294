"""How long pods may take to end after they are deleted: at a step of a rollout, at a scale-in and at a drain."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator

from deployments.spec.domain.engines import LLM_ENGINES
from portal.core.definitions import setting

LANGUAGE_MODEL_SECONDS: Final = 600
# Longer than Triton's own exit timeout, and shorter than the two minutes' notice of a spot node.
OTHER_SECONDS: Final = 35
FEWEST_SECONDS: Final = 20
MOST_SECONDS: Final = 3600


def _check(seconds: int) -> int:
    if seconds and not FEWEST_SECONDS <= seconds <= MOST_SECONDS:
        raise ValueError("not a termination grace")
    return seconds


TerminationGrace = Annotated[
    int,
    AfterValidator(_check),
    setting(
        "Termination grace",
        "How long a pod that is replaced or scaled in may finish its requests. Not set: 10 minutes for "
        "language models, 35 seconds for others.",
        unit="s",
        group="advanced",
        is_derived=True,
        is_empty_zero=True,
        fix=f"Use {FEWEST_SECONDS} to {MOST_SECONDS} seconds, or 0 for the engine's default.",
    ),
]


def default_seconds(engine: str) -> int:
    """A generated text takes minutes, an inference less than a second. 0: as pods always ended."""
    return LANGUAGE_MODEL_SECONDS if engine in LLM_ENGINES else 0
