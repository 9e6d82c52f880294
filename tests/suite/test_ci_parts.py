"""`.ci/run` says at its end what each part took, also where one failed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

_PARTS: Final = Path(__file__).resolve().parents[2] / ".ci" / "parts"
_RUN: Final = """
set -euo pipefail
. {parts}
part quick bash -c 'echo out; echo err >&2'
part busy {python} -S -c 'import time
while time.process_time() < 1: pass'
part wrong bash -c 'exit 3'
part never echo never
"""


def test_a_run_prints_its_parts_and_ends_with_the_status_of_the_one_that_failed() -> None:
    script = _RUN.format(parts=_PARTS, python=sys.executable)

    done = subprocess.run(
        ["bash", "-c", script], check=False, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 3
    assert done.stderr == "err\n"
    out, *lines = done.stdout.splitlines()
    assert out == "out"
    rows = [re.fullmatch(r"(\w+) +\d+\.\d min, +(\d+) s of processor time", line) for line in lines]
    assert [row and row[1] for row in rows] == ["quick", "busy", "wrong"]
    busy = rows[1]
    assert busy
    assert int(busy[2]) >= 1
