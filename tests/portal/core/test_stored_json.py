"""JSON columns are read as Django reads them, whatever the database gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db.models import JSONField, TextField

from portal.core.statements import stored_json


class _Decoder(json.JSONDecoder):
    pass


@pytest.mark.parametrize(
    "stored",
    [
        *('{"a": [1, 2.5, null, true]}', "{}", "[]", '"ü \\u2028"', "null", "12", "-1e3", "NaN"),
        *(" [1]", "[1] ", "[1] 2", "", "{", "nothing", None, 5, {"a": 1}),
    ],
)
def test_a_column_has_the_value_that_django_reads(stored: Any) -> None:
    field: Any = JSONField()
    read = stored_json.quicker(field.from_db_value, field)

    assert read is not field.from_db_value
    assert _of(read, stored) == _of(field.from_db_value, stored)


def test_other_converters_stay() -> None:
    text, own = TextField(), JSONField(decoder=_Decoder)

    assert stored_json.quicker(str, text) is str
    assert stored_json.quicker(str, JSONField()) is str
    assert stored_json.quicker(own.from_db_value, own) == own.from_db_value


def _of(read: Any, stored: Any) -> str:
    """As text: NaN is no NaN."""
    try:
        return repr(read(stored, None, None))
    except TypeError as error:
        return type(error).__name__
