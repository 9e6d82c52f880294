"""What a stranger provokes is a short warning, a few times a minute; what is our fault stays an error with its traceback."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from django.core import exceptions
from django.test import Client
from django.urls import path

from portal import provoked_logs
from portal.provoked_logs import LINES_A_MINUTE, LOGGERS, LONGEST_LINE, Provoked


@pytest.fixture(autouse=True)
def a_new_minute() -> None:
    for name in LOGGERS:
        for one in logging.getLogger(name).filters:
            if isinstance(one, Provoked):
                one.__init__()  # type: ignore[misc]  # as after the start


_HOSTS = (
    "evil.example.org",
    "10.0.3.17:8000",
    "a b",
    "x\r\nERROR forged",
    "é",
    "h" * 5000,
    "@",
    "",
)
_PATHS = ("/", "/sign-in", "/api/v1/models", "/static/css/none.css", "/deployments")


@pytest.mark.django_db
@pytest.mark.parametrize("host", _HOSTS)
@pytest.mark.parametrize("where", _PATHS)
def test_a_wrong_host_is_a_refusal_in_one_line(
    host: str, where: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = ["slipway.example.org"]

    answer = Client(raise_request_exception=False).get(where, headers={"host": host})

    assert answer.status_code in (400, 404)  # a static file has no host
    if answer.status_code == 400:
        _assert_one_short_warning(caplog)
        if where.startswith("/api/"):
            assert answer.json()["code"] == "bad_request"


def _assert_one_short_warning(caplog: pytest.LogCaptureFixture) -> None:
    (record,) = [one for one in caplog.records if one.name.startswith("django")]
    assert record.levelno <= logging.WARNING
    assert record.exc_info is None
    assert len(record.getMessage()) <= LONGEST_LINE
    assert record.getMessage().isprintable()


@pytest.mark.django_db
def test_a_scanner_does_not_fill_the_log(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.ALLOWED_HOSTS = ["slipway.example.org"]

    for number in range(50):
        assert Client().get("/", headers={"host": f"h{number}.example"}).status_code == 400

    # The minute may have turned meanwhile.
    assert len(caplog.records) <= 2 * LINES_A_MINUTE


def _record(at: float, text: str = "refused") -> logging.LogRecord:
    made = logging.LogRecord("django.security.X", logging.ERROR, "", 1, text, None, None)
    made.created = at
    return made


def test_the_next_minute_says_how_many_were_left_out() -> None:
    filtered = Provoked()

    kept = [one for one in (_record(60.0 + n) for n in range(12)) if filtered.filter(one)]
    later = _record(125.0)

    assert len(kept) == LINES_A_MINUTE
    assert filtered.filter(later)
    assert later.getMessage() == f"refused ({12 - LINES_A_MINUTE} more were not logged)"
    again = _record(190.0)
    assert filtered.filter(again)
    assert again.getMessage() == "refused"


_ALL_REFUSALS = """
from django.core import exceptions
from django.contrib.sessions import exceptions as of_sessions
def every(kind):
    yield kind.__name__
    for one in kind.__subclasses__():
        yield from every(one)
print(*sorted(every(exceptions.SuspiciousOperation)))
"""


def test_each_refusal_that_django_logs_as_an_error_is_bounded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ALL_REFUSALS], capture_output=True, text=True, check=True
    )

    assert sorted(f"django.security.{name}" for name in done.stdout.split()) == sorted(LOGGERS)


def _view(error: Exception) -> Any:
    def fail(request: Any) -> None:
        raise error

    return fail


_REFUSALS = (
    exceptions.RequestDataTooBig("Request body exceeded settings.DATA_UPLOAD_MAX_MEMORY_SIZE."),
    exceptions.TooManyFieldsSent("The number of GET/POST parameters exceeded settings."),
    exceptions.TooManyFilesSent("The number of files exceeded settings."),
    exceptions.SuspiciousFileOperation("Detected path traversal attempt"),
    exceptions.SuspiciousOperation("Invalid"),
    exceptions.BadRequest("Unable to read"),
    exceptions.PermissionDenied("No"),
)
urlpatterns = [
    *(path(type(one).__name__, _view(one)) for one in _REFUSALS),
    path("fault", _view(ValueError("ours"))),
]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [type(one).__name__ for one in _REFUSALS])
@pytest.mark.urls(__name__)
def test_no_refusal_has_a_traceback(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    assert Client().get(f"/{kind}").status_code in (400, 403)

    _assert_one_short_warning(caplog)


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_a_fault_of_ours_keeps_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    assert Client(raise_request_exception=False).get("/fault").status_code == 500

    (record,) = [one for one in caplog.records if one.name == "django.request"]
    assert record.levelno == logging.ERROR
    assert record.exc_info


def test_the_filters_are_set() -> None:
    for name in LOGGERS:
        assert any(isinstance(one, Provoked) for one in logging.getLogger(name).filters), name
    assert provoked_logs.LINES_A_MINUTE < 10
