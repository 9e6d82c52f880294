"""`make test-engines [ARGS=…]`: install the engine, run the tests on it.

Where it cannot be installed within its minutes nothing is run, and the exit status is 0: the message says why.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.engines import build
from tests.engines.running import PROGRAM

_TESTS = ("tests/engines",)


def main() -> int:
    started = time.monotonic()
    try:
        engine = build.build()
    except build.Unavailable as error:
        print(f"The tests on real engines are SKIPPED. {error}")
        return 0
    print(engine.describe(), flush=True)
    # In their order: the last test of a module ends its server.
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-q", "-rs", "--durations=5"]
    command += sys.argv[1:] or _TESTS
    environment = {**os.environ, PROGRAM: str(engine.vllm)}
    status = subprocess.run(command, env=environment, check=False).returncode
    print(f"{'FAILED' if status else 'Passed'} after {time.monotonic() - started:.0f} s.")
    return status


if __name__ == "__main__":
    sys.exit(main())
