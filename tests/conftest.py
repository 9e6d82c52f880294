"""Test-wide settings and fixtures. Real parts are started once per test run and worker."""

from hypothesis import settings

pytest_plugins = ["tests.fixtures.prometheus", "tests.fixtures.s3"]

# How long an example takes says how busy the machine is; each test has a time limit anyway.
settings.register_profile("slipway", deadline=None)
settings.load_profile("slipway")
