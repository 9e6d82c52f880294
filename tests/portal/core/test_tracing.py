"""Without a receiver neither spans nor their exporter are imported. (Valkey's client imports the metrics of OpenTelemetry.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_CODE = """
import sys, django
django.setup()
from portal import wsgi
from portal.core import tracing
with tracing.span("a"), tracing.span_for_each("b", [("", {})]):
    tracing.note("c", parent="d")
own = ("opentelemetry.sdk.trace", "opentelemetry.exporter", "opentelemetry.proto")
print([name for name in sys.modules if name.startswith(own)])
"""


def test_it_costs_nothing_where_it_is_off() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CODE],
        cwd=Path(__file__).resolve().parents[3],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )

    assert done.stdout.splitlines()[-1] == "[]", done.stderr
