"""The Helm chart's values and commands. `make test-cluster` renders it with Helm and applies it to an API server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from portal import celery_config
from tests.portal.management.test_compose import variables_read

CHART = Path(__file__).resolve().parents[3] / "deploy" / "chart"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
_REQUIRED = {"host": "slipway.example.org"}


def errors(values: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft7Validator(SCHEMA)
    return [".".join(map(str, error.absolute_path)) for error in validator.iter_errors(values)]


def filled(**changes: Any) -> dict[str, Any]:
    image = {**VALUES["image"], "repository": "registry.example.org/slipway"}
    return {**VALUES, "image": image, **_REQUIRED, **changes}


def test_defaults_lack_only_image_and_host() -> None:
    assert errors(filled()) == []
    assert sorted(errors(VALUES)) == ["host", "image.repository"]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"host": "https://slipway.example.org"}, "host"),
        ({"settings": {"SLIPWAY_SMTP_URL": "smtps://ana:hunter2@x"}}, "settings"),
        ({"settings": {"SLIPWAY_OIDC_OKTA_CLIENT_SECRET": "x"}}, "settings"),
        ({"settings": {"SLIPWAY_STEP_UP_MINUTES": 15}}, "settings.SLIPWAY_STEP_UP_MINUTES"),
        ({"settings": {"PATH": "/tmp"}}, "settings"),
        ({"trustedProxies": ["10.0.0.1"]}, "trustedProxies.0"),
        ({"sceret": "typo"}, ""),
    ],
)
def test_values_that_cannot_be_meant_are_refused(changes: dict[str, Any], where: str) -> None:
    assert errors(filled(**changes)) == [where]


def test_each_queue_has_one_kind_of_worker_by_default() -> None:
    consumed = [queue for worker in VALUES["workers"].values() for queue in worker["queues"]]

    assert sorted(consumed) == celery_config.QUEUES
    items = SCHEMA["properties"]["workers"]["additionalProperties"]["properties"]["queues"]["items"]
    assert sorted(items["enum"]) == celery_config.QUEUES


def test_templates_set_only_what_settings_read_and_all_that_is_required() -> None:
    text = "".join(path.read_text() for path in (CHART / "templates").glob("*"))
    named = set(re.findall(r"SLIPWAY_[A-Z0-9_]+", text))

    assert named <= variables_read()
    assert variables_read(required_only=True) <= named
