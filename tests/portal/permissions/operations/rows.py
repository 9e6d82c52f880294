"""Rows of operations with the bodies of tests/portal/api/every_operation.py."""

from __future__ import annotations

from typing import Any

from tests.portal.api.every_operation import BODIES
from tests.portal.permissions.matrix import Row


def rows_of(allowed: str, ok: int, *keys: str, **more: Any) -> tuple[Row, ...]:
    return tuple(Row(key, allowed, ok=ok, body=BODIES.get(key, {}), **more) for key in keys)
