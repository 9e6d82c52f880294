"""The form of log lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from portal import logging_config
from portal.env import BadEnvironment

_PROGRAM = """
import logging, django
django.setup()
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("fleet.prices").exception("first\\nsecond %s", {"é": 1})
"""


def test_as_json_each_record_is_one_line_with_its_traceback() -> None:
    environment = {**os.environ, "SLIPWAY_LOG_FORMAT": "json"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )

    (line,) = done.stderr.splitlines()
    said = json.loads(line)
    assert (said["level"], said["logger"]) == ("ERROR", "fleet.prices")
    assert said["message"] == "first\nsecond {'é': 1}"
    assert said["exc_info"].endswith("ZeroDivisionError: division by zero")
    assert said["at"].startswith("20")


def test_another_form_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadEnvironment, match=r"is 'xml'\. Set it to text or json"):
        logging_config.build_logging("xml")
