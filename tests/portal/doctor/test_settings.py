"""Each setting that makes an installation unsafe has a line that names it, and the fix."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portal.doctor.lines import Status
from tests.portal.doctor.conftest import Doctor, failing


def test_a_good_installation_passes(doctor: Doctor, installed: Any) -> None:
    lines = doctor("settings")

    assert {name: line.status for name, line in lines.items()} == {
        "Settings": Status.OK,
        "Host names": Status.OK,
        "Public address": Status.OK,
        "Static files": Status.OK,
    }


@pytest.mark.parametrize(
    ("name", "value", "line", "detail"),
    [
        ("SECRET_KEY", "short", "Settings", "slipway.E001"),
        ("SECRET_KEY", "a" * 60, "Settings", "security.W009"),
        ("DEBUG", True, "Settings", "security.W018"),
        ("SESSION_COOKIE_SECURE", False, "Settings", "security.W012"),
        ("CSRF_COOKIE_SECURE", False, "Settings", "security.W016"),
        ("SECURE_SSL_REDIRECT", False, "Settings", "security.W008"),
        ("SECURE_HSTS_SECONDS", 0, "Settings", "security.W004"),
        ("SLIPWAY_AUDIT_SYSLOG", "https://siem", "Settings", "slipway.E002"),
        ("SLIPWAY_DEMO", True, "Demo", "SLIPWAY_DEMO is on"),
        ("ALLOWED_HOSTS", ["*"], "Host names", "has *"),
        ("ALLOWED_HOSTS", ["127.0.0.1", "localhost"], "Host names", "127.0.0.1, localhost only"),
        ("SLIPWAY_PUBLIC_URL", "", "Public address", "links in messages lead nowhere"),
        ("SLIPWAY_PUBLIC_URL", "http://slipway.example.org", "Public address", "is not https://"),
        ("SLIPWAY_PUBLIC_URL", "https://other.example.org", "Public address", "answer 400"),
        ("CSRF_TRUSTED_ORIGINS", [], "Form origins", "not in SLIPWAY_TRUSTED_ORIGINS"),
        ("STATIC_ROOT", "/nowhere", "Static files", "/nowhere lacks css/slipway.css"),
    ],
)
def test_what_is_wrong_fails_with_its_fix(
    doctor: Doctor, installed: Any, name: str, value: Any, line: str, detail: str
) -> None:
    setattr(installed, name, value)

    lines = doctor("settings")

    assert lines[line].status is Status.FAILED
    assert detail in lines[line].detail
    assert re.search(r"SLIPWAY_|collectstatic|secrets\.|setting that is named", lines[line].fix)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("SLIPWAY_TRUSTED_PROXIES", [], "Proxies"),
        ("SLIPWAY_REQUIRE_SECOND_FACTOR", False, "Second factor"),
    ],
)
def test_what_should_be_better_is_noted(
    doctor: Doctor, installed: Any, name: str, value: Any, line: str
) -> None:
    setattr(installed, name, value)

    lines = doctor("settings")

    assert lines[line].status is Status.NOTE
    assert name in lines[line].fix
    assert not failing(lines)


def test_a_slash_at_the_end_of_the_public_address_is_dropped() -> None:
    """Paths are appended to it, and it is the issuer of signed keys."""
    read = subprocess.run(
        [sys.executable, "-c", "from portal import settings; print(settings.SLIPWAY_PUBLIC_URL)"],
        cwd=Path(__file__).resolve().parents[3],
        env={**os.environ, "SLIPWAY_PUBLIC_URL": "https://slipway.example/"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )

    assert read.stdout.splitlines()[-1:] == ["https://slipway.example"], read.stderr


_GOOD = {
    "SLIPWAY_SECRET_KEY": "k" * 60,
    "SLIPWAY_DATABASE_URL": "postgres://slipway@127.0.0.1/slipway",
    "SLIPWAY_REDIS_URL": "redis://127.0.0.1:1/0",
}


@pytest.mark.parametrize("missing", _GOOD)
@pytest.mark.parametrize("command", ["doctor", "migrate"])
def test_a_missing_variable_is_one_line_and_no_traceback(command: str, missing: str) -> None:
    environment = {name: value for name, value in _GOOD.items() if name != missing}

    done = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{missing} is not set. Set it to ")
    assert len(done.stderr.splitlines()) == 1
