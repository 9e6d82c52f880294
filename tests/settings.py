"""Settings for tools that import Django without a test run (mypy, makemigrations in checks)."""

from tests import environment

environment.apply()

from portal.settings import *  # noqa: E402, F403  the environment must be set first
