"""Compare two answers to the same rows: those of the library that trained a forest, and those that are served."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

# Rows that are asked again of the running server, and the numbers of rows and of answers together. A pod's
# plan and its result have limits (deployments/load_tests/domain/).
_KEPT_ROWS: Final = 32
_KEPT_NUMBERS: Final = 8192
_KEPT_SCORES: Final = 512
_EPSILON: Final = float(np.finfo(np.float32).eps)


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a sample, and the answers that a server has to give, as base64 of little-endian 32-bit numbers.
    `tolerance` is relative; `library` names who answered.
    """

    rows: str
    answers: str
    count: int
    tolerance: float
    library: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def read_rows(self) -> Any:
        return _unpack(self.rows, self.count)

    def describe_difference(self, served: str) -> str:
        """Compare with the answers of a server, in base64. Empty if they agree."""
        expected = _unpack(self.answers, self.count)
        try:
            answered = _unpack(served, self.count)
        except ValueError:
            return f"Triton does not answer one row of numbers for each of {self.count} rows"
        return describe_difference(
            answered,
            expected,
            rows=self.read_rows(),
            tolerance=self.tolerance,
            library=self.library,
        )


def from_json(data: Mapping[str, Any]) -> Sample:
    return Sample(**data)


def choose_tolerance(trees: int) -> float:
    """Return the relative error of summing so many 32-bit numbers in another order."""
    return max(1e-5, 4 * _EPSILON * (8 + 2 * math.sqrt(trees)))


def keep_sample(rows: Any, answers: Any, *, tolerance: float, library: str) -> Sample | None:
    """Keep the first rows. None if a single one is too large to be asked again."""
    features, scores = rows.shape[1], answers.shape[1]
    count = min(_KEPT_ROWS, len(rows), _KEPT_NUMBERS // features, _KEPT_SCORES // scores)
    if not count:
        return None
    return Sample(_pack(rows[:count]), _pack(answers[:count]), count, tolerance, library)


def describe_difference(
    served: Any, expected: Any, *, rows: Any, tolerance: float, library: str
) -> str:
    """Describe the row that differs most, as a sentence without its full stop. Empty if all rows agree."""
    if served.shape != expected.shape:
        return f"Triton's backend answers {served.shape[-1]:,} numbers for a row, and {library} {expected.shape[-1]:,}"
    differs = ~np.isclose(
        served, expected, rtol=tolerance, atol=tolerance * _scale_of(expected), equal_nan=True
    )
    if not differs.any():
        return ""
    with np.errstate(invalid="ignore"):
        distance = np.where(differs, np.nan_to_num(np.abs(served - expected), nan=np.inf), -1)
    row, column = np.unravel_index(int(distance.argmax()), distance.shape)
    return (
        f"{int(differs.any(axis=1).sum()):,} of {len(rows):,} generated rows get other scores: a row of {_show(rows[row])} "
        f"gets {served[row, column]:.4g} from Triton's backend and {expected[row, column]:.4g} from {library}"
    )


def _scale_of(expected: Any) -> float:
    finite = expected[np.isfinite(expected)]
    return float(np.max(np.abs(finite), initial=0.0))


def _show(row: Any) -> str:
    shown = ", ".join(f"{value:.6g}" for value in row[:6].tolist())
    return f"({shown}{', …' if len(row) > 6 else ''})"


def _pack(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _unpack(text: str, count: int) -> Any:
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(count, -1)
