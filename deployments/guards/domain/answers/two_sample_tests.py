"""Tests and distances for two samples of a model's answers. Pure Python; each names its source.

Repeated testing: `interim_look` gives the sample sizes at which a test is carried out (FIRST, and
each time the smaller sample has doubled) and the level of each look, alpha / ((k + 1) (k + 2)) at
look k = 0, 1, 2, …. "Look" is the term of group-sequential testing for an interim analysis of data
that still accumulate. The levels sum to alpha, so by the union bound the chance of any false alarm
over all looks is at most alpha, for every test that is valid at a fixed sample size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

FIRST: Final = 100
LAST_LOOK: Final = 10
# Cochran (1954): cells with a smaller expected count are put together.
_LEAST_EXPECTED: Final = 5.0
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class InterimLook:
    number: int
    size: int
    level: float


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of a test. `effect` is what the limit bounds; `p` is the chance of such samples if there is no
    change.
    """

    effect: float
    p: float


def interim_look(n: int, *, alpha: float) -> InterimLook | None:
    """Return the latest look that samples of at least `n` allow. None before the first."""
    if n < FIRST:
        return None
    number = min(LAST_LOOK, (n // FIRST).bit_length() - 1)
    return InterimLook(number, FIRST << number, alpha / ((number + 1) * (number + 2)))


def add(batches: Sequence[Counts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for batch in batches:
        for name, count in batch.items():
            total[name] = total.get(name, 0) + count
    return total


def compare_labels(stable: Counts, candidate: Counts) -> Compared:
    """Compare labels by the Jensen-Shannon distance (Lin 1991; Endres and Schindelin 2003) and a chi-square test of
    homogeneity (Pearson 1900).

    The distance is in bits to the power 1/2, so 0 to 1. The test puts rare labels together.
    """
    return Compared(_jensen_shannon(stable, candidate), _chi_square_p(stable, candidate))


def compare_ordered(stable: Counts, candidate: Counts) -> Compared:
    """Compare counts whose names are numbers by Kolmogorov-Smirnov.

    The effect is the largest distance between the two distribution functions, with its asymptotic p (Stephens
    1970). Ties make it conservative.
    """
    n, m = sum(stable.values()), sum(candidate.values())
    below = [0, 0]
    largest = 0.0
    for name in sorted(set(stable) | set(candidate), key=float):
        below[0] += stable.get(name, 0)
        below[1] += candidate.get(name, 0)
        largest = max(largest, abs(below[0] / n - below[1] / m))
    root = math.sqrt(n * m / (n + m))
    return Compared(largest, _kolmogorov((root + 0.12 + 0.11 / root) * largest))


def compare_failures(stable: tuple[int, int], candidate: tuple[int, int]) -> Compared:
    """Compare (failed, all) of each side: the increase in failure rate, and Fisher's exact test (1922) of the
    candidate failing more often.
    """
    rise = candidate[0] / candidate[1] - stable[0] / stable[1]
    return Compared(rise, 1.0 if rise <= 0 else _hypergeometric_tail(stable, candidate))


def median(counts: Counts) -> float:
    half, cumulative = sum(counts.values()) / 2, 0
    for name in sorted(counts, key=float):
        cumulative += counts[name]
        if cumulative >= half:
            return float(name)
    return math.nan


def mean(counts: Counts) -> float:
    return sum(float(name) * n for name, n in counts.items()) / sum(counts.values())


def cosine_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Return 1 - cos of the angle. 1 if either vector has no direction."""
    length = math.hypot(*first) * math.hypot(*second)
    if not length:
        return 1.0
    inner = math.fsum(a * b for a, b in zip(first, second, strict=True)) / length
    return 1 - max(-1.0, min(1.0, inner))


def _jensen_shannon(first: Counts, second: Counts) -> float:
    n, m = sum(first.values()), sum(second.values())
    divergence = 0.0
    for name in sorted({*first, *second}):
        p, q = first.get(name, 0) / n, second.get(name, 0) / m
        middle = (p + q) / 2
        divergence += sum(part / 2 * math.log2(part / middle) for part in (p, q) if part)
    return math.sqrt(max(0.0, min(1.0, divergence)))


def _chi_square_p(first: Counts, second: Counts) -> float:
    n, m = sum(first.values()), sum(second.values())
    least = min(n, m) / (n + m)
    cells: list[tuple[int, int]] = []
    rare = (0, 0)
    for name in sorted({*first, *second}):
        cell = (first.get(name, 0), second.get(name, 0))
        if sum(cell) * least < _LEAST_EXPECTED:
            rare = (rare[0] + cell[0], rare[1] + cell[1])
        else:
            cells.append(cell)
    cells += [rare] if sum(rare) else []
    if len(cells) < 2:
        return 1.0
    statistic = 0.0
    for cell in cells:
        for observed, size in zip(cell, (n, m), strict=True):
            expected = sum(cell) * size / (n + m)
            statistic += (observed - expected) ** 2 / expected
    return chi_square_tail(statistic, len(cells) - 1)


def chi_square_tail(x: float, degrees: int) -> float:
    """Return P(X >= x), by the recurrence of the incomplete gamma function over whole and half numbers (Abramowitz
    and Stegun 26.4.4, 26.4.5).
    """
    if x <= 0:
        return 1.0
    half = x / 2
    if degrees % 2:
        shape, tail = 0.5, math.erfc(math.sqrt(half))
    else:
        shape, tail = 1.0, math.exp(-half)
    while shape < degrees / 2:
        tail += math.exp(shape * math.log(half) - half - math.lgamma(shape + 1))
        shape += 1
    return min(1.0, tail)


def _kolmogorov(x: float) -> float:
    if x < 0.2:
        return 1.0
    terms = ((-1) ** (j - 1) * math.exp(-2 * j * j * x * x) for j in range(1, 101))
    return max(0.0, min(1.0, 2 * math.fsum(terms)))


def _hypergeometric_tail(stable: tuple[int, int], candidate: tuple[int, int]) -> float:
    """Return P(at least as many of the failures fall on the candidate), all splits being equally likely."""
    failures, drawn = stable[0] + candidate[0], candidate[1]
    rest = stable[1] + candidate[1] - failures
    start = candidate[0]
    log_first = (
        _log_choose(failures, start)
        + _log_choose(rest, drawn - start)
        - _log_choose(failures + rest, drawn)
    )
    term, total = 1.0, 0.0
    for x in range(start, min(failures, drawn) + 1):
        total += term
        term *= (failures - x) * (drawn - x) / ((x + 1) * (rest - drawn + x + 1))
        if term < total * 1e-16:
            break
    return min(1.0, math.exp(log_first) * total)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
