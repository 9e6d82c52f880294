"""Test-wide settings and fixtures. Real parts are started once per test run and worker."""

pytest_plugins = ["tests.fixtures.s3"]
