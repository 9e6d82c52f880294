"""An installation with a real database, broker, bucket and mail server, on which checks are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portal.accounts.policy import SYSTEM
from portal.doctor import examination
from portal.doctor.lines import Line, Status

Lines = dict[str, Line]
Doctor = Callable[[str], Lines]


@pytest.fixture
def doctor(db: None) -> Doctor:
    """The lines of an area by name; those of one name are joined, the worst status counts."""

    def run(area: str) -> Lines:
        lines: Lines = {}
        for result in examination.run(actor=SYSTEM, areas=[area]):
            line = result.line
            lines[line.name] = _joined(lines[line.name], line) if line.name in lines else line
        return lines

    return run


def _joined(one: Line, other: Line) -> Line:
    status = max(one.status, other.status, key=list(Status).index)
    return Line(one.name, status, f"{one.detail}; {other.detail}", f"{one.fix} {other.fix}")


def failing(lines: Lines) -> set[str]:
    return {name for name, line in lines.items() if line.status is Status.FAILED}


@pytest.fixture
def installed(settings: Any, tmp_path: Any) -> Any:
    """Settings as a real installation has them."""
    settings.SLIPWAY_DEMO = settings.DEBUG = False
    settings.ALLOWED_HOSTS = ["slipway.example.org"]
    settings.SLIPWAY_PUBLIC_URL = "https://slipway.example.org"
    settings.CSRF_TRUSTED_ORIGINS = ["https://slipway.example.org"]
    settings.SECRET_KEY = "2fRk9-installed-key-with-many-different-letters-Zx81QwLm"
    settings.SLIPWAY_TRUSTED_PROXIES = ["10.0.0.0/8"]
    settings.SLIPWAY_REQUIRE_SECOND_FACTOR = True
    settings.SLIPWAY_HTTPS = settings.SECURE_SSL_REDIRECT = True
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.WHITENOISE_USE_FINDERS = False
    settings.STATIC_ROOT = str(tmp_path)
    (tmp_path / "css").mkdir()
    (tmp_path / "css" / "slipway.css").write_text("")
    return settings
