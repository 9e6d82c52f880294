"""What tests of the upload page share. The fixture `page` is in conftest.py."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connections

from deployments.models import ModelVersion
from deployments.registry.services import verification
from tests import screenshots

Result = TypeVar("Result")
marks = [
    pytest.mark.browser,
    pytest.mark.skipif(screenshots.chromium_path() is None, reason="Chromium is not installed"),
    pytest.mark.django_db(transaction=True),
]


def apart(work: Callable[[], Result]) -> Result:
    """Playwright keeps an event loop in this thread, so the database is used from another one."""

    def run() -> Result:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(run).result()


def verify_the_only_version() -> ModelVersion:
    verification.advance(ModelVersion.objects.get().pk)
    return ModelVersion.objects.get()
