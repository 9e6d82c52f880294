"""/metrics with a token."""

from __future__ import annotations

from typing import Any

import pytest

from tests.portal.monitoring.exposition import scrape


@pytest.fixture
def offered(settings: Any, db: None) -> Any:
    settings.SLIPWAY_METRICS_TOKEN = scrape.TOKEN
    return settings
