"""What `make bench NAME=render` renders, which nothing else reads."""

from typing import get_args

from deployments.spec.domain.engines import Engine
from tests.benchmarks import render


def test_its_specs_are_valid_and_of_every_engine() -> None:
    rows = render.rows()

    assert {row["engine"] for row in rows} == set(get_args(Engine))
    assert all(render.build(number, row) for number, row in enumerate(rows))
