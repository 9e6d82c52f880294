"""The Warning header of an API server."""

from __future__ import annotations

import pytest

from fleet.kube.domain.warnings import parse_warnings


@pytest.mark.parametrize(
    ("headers", "texts"),
    [
        ([], []),
        (['299 - "policy/v1beta1 is deprecated"'], ["policy/v1beta1 is deprecated"]),
        # A quote and a backslash are escaped; a comma within the text does not end it.
        (
            [r'299 - "would violate \"restricted\\x\": a, b"'],
            ['would violate "restricted\\x": a, b'],
        ),
        # A proxy joins headers; a date may follow the text.
        (['299 - "one", 299 kube "two" "Wed, 21 Oct 2015 07:28:00 GMT"'], ["one", "two"]),
        (['299 - "same"', '299 - "same"'], ["same"]),
        (["no warning at all", "299 - unquoted", '299 - "unfinished'], []),
    ],
)
def test_each_text_is_read_once(headers: list[str], texts: list[str]) -> None:
    assert parse_warnings(headers) == texts
