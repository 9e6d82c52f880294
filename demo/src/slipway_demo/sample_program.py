"""`python -m slipway_demo.sample_program FOLDER`: make the sample deployments of the demo that runs, then end."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import django


def main() -> int:
    try:
        return _run(Path(sys.argv[1]))
    except KeyboardInterrupt:
        # Ctrl-C ends the whole demo, which says so; the next start continues here.
        return 130


def _run(folder: Path) -> int:
    django.setup()
    logging.disable(logging.INFO)
    from slipway_demo import sample_start  # noqa: PLC0415  after django.setup()

    try:
        print(f"  samples   {sample_start.run(folder)}", flush=True)
    except sample_start.NotMade as problem:
        print(f"  samples   not complete, the next start continues: {problem}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
