"""Copies of a row, written in bulk."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)
_BATCH = 500


def copies(row: Row, times: float, **changed: Callable[[int], Any]) -> list[Row]:
    """`changed` gives a field of the copy with a number, from 1 on; all others are those of `row`."""
    model = type(row)
    fields = {
        field.attname: getattr(row, field.attname)
        for field in model._meta.concrete_fields
        if not field.primary_key
    }
    key = model._meta.pk
    made = []
    for number in range(1, max(1, round(times)) + 1):
        values = fields | {name: value(number) for name, value in changed.items()}
        if isinstance(key, models.UUIDField):
            values["id"] = uuid.uuid4()
        made.append(model(**values))
    return model._default_manager.bulk_create(made, batch_size=_BATCH)


def digest(*parts: object) -> str:
    """64 hexadecimal digits of these alone."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()
