"""Slipway's command line: `manage.py` in a checkout, `slipway-portal` or `python -m portal` where the wheel is installed."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line

from portal.env import BadEnvironment


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        execute_from_command_line(sys.argv)
    except BadEnvironment as problem:
        sys.exit(f"{problem}")


if __name__ == "__main__":
    main()
