"""The base of all responses, and the methods that some have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response of the portal. `raw` is the portal's whole answer; two answers are equal when their fields are."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


class ScoreNames:
    """The method of a signature that names what a classifying forest returns."""

    __slots__ = ()
    class_names: tuple[str, ...]

    def name_scores(self, scores: Any) -> list[dict[str, float]]:
        """Name the scores of each row by its classes. A single score is that of the second of two classes.

        Raises ValueError for rows of another length.
        """
        rows = scores.tolist() if hasattr(scores, "tolist") else scores
        if len(self.class_names) == 2:
            rows = [[1 - row[0], row[0]] if len(row) == 1 else row for row in rows]
        return [dict(zip(self.class_names, row, strict=True)) for row in rows]
