"""Test-wide settings and fixtures. Real parts are started once per test run and worker."""

import pytest
from hypothesis import settings
from playwright.sync_api import expect

from tests.waiting import PATIENCE_MS

pytest_plugins = [
    "tests.starvation",
    "tests.fixtures.cache",
    "tests.worker_groups",
    "tests.fixtures.database",
    "tests.fixtures.prometheus",
    "tests.fixtures.s3",
    "tests.fixtures.scraped_pods",
]

# How long an example takes says how busy the machine is; each test has a time limit anyway.
settings.register_profile("slipway", deadline=None)
settings.load_profile("slipway")
# So does how long a page takes.
expect.set_options(timeout=PATIENCE_MS)

# Modules that take longest, longest first: begun last, they would run on while other workers idle.
_FIRST = (
    "tests/e2e/",
    "tests/deployments/registry/test_batching_on_triton.py",
    "tests/contract/test_serving.py",
    "tests/portal/permissions/",
    "tests/contract/test_sqs_jobs.py",
    "tests/contract/test_queue_jobs.py",
    "tests/portal/ui/test_hostile_forms.py",
    "tests/portal/api/test_schema_fuzz.py",
    "tests/deployments/rollouts/test_every_crash.py",
    "tests/localcluster/test_load_test_program.py",
    "tests/fleet/observation/test_observation.py",
    "tests/localcluster/controllers/test_serving.py",
    "tests/portal/install/test_upgrade.py",
    "tests/suite/test_kept_scenes.py",
    "tests/deployments/registry/",
    "tests/deployments/",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place_in_order)


def _place_in_order(item: pytest.Item) -> int:
    module = item.nodeid.partition("::")[0]
    places = (place for place, first in enumerate(_FIRST) if module.startswith(first))
    return next(places, len(_FIRST))
