#!/usr/bin/env python
"""Slipway's command line."""

import os
import sys

from django.core.management import execute_from_command_line

from portal.env import BadEnvironment

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        execute_from_command_line(sys.argv)
    except BadEnvironment as problem:
        sys.exit(f"{problem}")
