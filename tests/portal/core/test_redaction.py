from __future__ import annotations

import pytest

from portal.core.redaction import redact


@pytest.mark.parametrize(
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
def test_links_and_codes_are_left_out(line: str, expected: str) -> None:
    assert redact(line) == expected
