"""Share what nobody held among those who held something. Pure arithmetic on integers, so that it is exact."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise


def share(
    total: int, weights: Sequence[int], *, before: int = 0, whole: int | None = None
) -> list[int]:
    """Split `total` in proportion to the weights. The parts sum to it exactly, and each is less than one unit from
    its exact part.

    For a page of a longer list, `before` is the sum of the weights of the pages before, `whole` that of all. The
    parts of all pages are then those of the list, whatever the size of a page.

    Raises ValueError if the weights do not sum to more than zero.
    """
    divisor = before + sum(weights) if whole is None else whole
    if divisor <= 0:
        raise ValueError("the weights must sum to more than zero")
    edges = [total * at // divisor for at in accumulate(weights, initial=before)]
    return [end - start for start, end in pairwise(edges)]
