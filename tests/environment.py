"""Environment of the tests: set before Django reads its settings."""

from __future__ import annotations

import os

DEFAULTS = {
    "SLIPWAY_SECRET_KEY": "only-for-tests-" * 4,
    "SLIPWAY_DATABASE_URL": "sqlite:///tmp/slipway-tests.sqlite3",
    "SLIPWAY_REDIS_URL": "redis://127.0.0.1:1/0",
    "SLIPWAY_DEMO": "1",
    "SLIPWAY_ALLOWED_HOSTS": "127.0.0.1,localhost,testserver",
    "SLIPWAY_S3_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "DJANGO_SETTINGS_MODULE": "portal.settings",
}


def apply() -> None:
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
