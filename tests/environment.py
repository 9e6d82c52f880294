"""Environment of the tests: set before Django reads its settings."""

from __future__ import annotations

import os

DEFAULTS = {
    "SLIPWAY_SECRET_KEY": "only-for-tests-" * 4,
    "SLIPWAY_DATABASE_URL": "sqlite:///tmp/slipway-tests.sqlite3",
    "SLIPWAY_REDIS_URL": "redis://127.0.0.1:1/0",
    "SLIPWAY_DEMO": "1",
    # Clusters of tests have their kubeconfigs in folders of their own.
    "SLIPWAY_CLUSTER_CREDENTIALS_DIR": "/",
    "SLIPWAY_ALLOWED_HOSTS": "127.0.0.1,localhost,testserver",
    "SLIPWAY_S3_ENDPOINT_URL": "http://127.0.0.1:1",
    # Tests send more requests a minute than any client; tests of the limits set their own.
    "SLIPWAY_API_REQUESTS_PER_MINUTE": "1000000",
    "SLIPWAY_API_ANONYMOUS_PER_MINUTE": "1000000",
    # Clocks of tests jump; tests of unused sessions set their own limit.
    "SLIPWAY_SESSION_IDLE_MINUTES": "0",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "DJANGO_SETTINGS_MODULE": "portal.settings",
}


def apply() -> None:
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
