"""How many fields of each form are open. A bound is lowered, never raised: another field needs another's place."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.deployments.callers.test_provider_tokens import with_tokens
from tests.deployments.world import World, cluster_calls, moving_clock, world
from tests.open_fields import find_form, list_open_fields
from tests.page import page

__all__ = ["cluster_calls", "moving_clock", "world"]
_DETECTOR = "/vision/deployments/detector"


@pytest.mark.parametrize(
    ("address", "field_name", "most"),
    [
        pytest.param("/vision/upload", "model", 3, id="upload"),
        pytest.param("/vision/import", "address", 3, id="import"),
        pytest.param("/vision/register", "source_uri", 3, id="reference"),
        pytest.param("/vision/batch/new", "model_version", 5, id="batch"),
        pytest.param(f"{_DETECTOR}/callers", "contact", 3, id="caller key"),
        pytest.param("/vision/deployments/new", "version", 6, id="deploy"),
        pytest.param(f"{_DETECTOR}/canary", "version", 4, id="canary"),
    ],
)
def test_a_form_has_few_open_fields(
    world: World, settings: Any, address: str, field_name: str, most: int
) -> None:
    settings.SLIPWAY_IMPORT_MLFLOW = {"lab": "https://mlflow.example"}
    with_tokens(world)
    client = Client()
    client.force_login(world.lead)

    form = find_form(page(client.get(address)), field_name)

    fields = list_open_fields(form)
    assert field_name in fields
    assert len(fields) <= most, fields
