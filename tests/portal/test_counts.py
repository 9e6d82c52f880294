"""Numbers of things in messages."""

from __future__ import annotations

import pytest

from portal.core.definitions.counts import format_count


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 GPUs"), (1, "1 GPU"), (2, "2 GPUs"), (1200, "1,200 GPUs")]
)
def test_only_one_is_singular(number: int, text: str) -> None:
    assert format_count(number, "GPU") == text
