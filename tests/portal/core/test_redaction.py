from __future__ import annotations

import logging

import pytest

from portal.core.redaction import redact

_LINES = pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"GET /decide/abc-_1 HTTP/1.1" 302', '"GET /decide/[redacted] HTTP/1.1" 302'),
        (
            '"GET /sign-in/with/my-lab/callback?code=x.y%2F~z&state=s HTTP/1.1" 302',
            '"GET /sign-in/with/my-lab/callback?[redacted] HTTP/1.1" 302',
        ),
        ("GET /invitation/abc-_1 302", "GET /invitation/[redacted] 302"),
        ("GET /password-link/abc-_1 302", "GET /password-link/[redacted] 302"),
        ("/sign-in/with/lab?next=/models", "/sign-in/with/lab?next=/models"),
    ],
)


@_LINES
def test_links_and_codes_are_left_out(line: str, expected: str) -> None:
    assert redact(line) == expected


@_LINES
def test_every_logger_of_the_portal_leaves_them_out(line: str, expected: str) -> None:
    record = logging.getLogger("gunicorn.access").makeRecord(
        "gunicorn.access", logging.INFO, "", 1, "%s from %s", (line, "10.0.0.1"), None
    )

    assert record.getMessage() == f"{expected} from 10.0.0.1"
