from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deployments.registry.domain import multipart
from deployments.registry.domain.multipart import MAX_PARTS

# S3 refuses a smaller part, but the last.
MIN_PART_BYTES = 5 * 2**20
SIZES = st.integers(min_value=1, max_value=50 * 2**30)


@given(SIZES)
def test_parts_cover_the_file_exactly_within_the_limits_of_s3(size: int) -> None:
    plan = multipart.plan(size)

    sizes = [plan.bytes_of(number) for number in range(1, plan.count + 1)]

    assert sum(sizes) == size
    assert plan.count <= MAX_PARTS
    assert all(part >= MIN_PART_BYTES for part in sizes[:-1])
    assert 0 < sizes[-1] <= plan.part_bytes


@given(SIZES, st.data())
def test_missing_is_what_is_absent_or_of_another_size(size: int, data: st.DataObject) -> None:
    plan = multipart.plan(size)
    numbers = st.integers(min_value=1, max_value=plan.count)
    absent = data.draw(st.sets(numbers, max_size=5))
    short = data.draw(st.sets(numbers, max_size=5)) - absent
    stored = {
        number: plan.bytes_of(number) - (number in short)
        for number in range(1, plan.count + 1)
        if number not in absent
    }

    assert plan.missing(stored) == sorted(absent | short)
    assert plan.foreign(stored | {plan.count + 1: 7}) == [plan.count + 1]
