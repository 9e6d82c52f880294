"""The Helm chart's values and commands. `make test-cluster` renders it with Helm and applies it to an API server."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from django.core.management import call_command

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
        ({"extraEnv": [{"name": "SLIPWAY_DEMO", "value": "1"}]}, "extraEnv.0.name"),
        ({"extraEnv": [{"name": "SSL_CERT_FILE"}]}, "extraEnv.0"),
        ({"extraVolumes": [{"name": "scratch", "emptyDir": {}}]}, "extraVolumes.0.name"),
        (
            {"extraVolumeMounts": [{"name": "ca", "mountPath": "/tmp"}]},
            "extraVolumeMounts.0.mountPath",
        ),
        ({"affinity": {"nodeAfinity": {}}}, "affinity"),
        ({"podLabels": {"cost-centre": 7}}, "podLabels.cost-centre"),
        ({"priorityClassName": "High"}, "priorityClassName"),
        (
            {"httpRoute": {"enabled": True, "parentRefs": [{"gateway": "x"}]}},
            "httpRoute.parentRefs.0",
        ),
        ({"beat": {**VALUES["beat"], "replicas": 2}}, "beat"),
        ({"web": {**VALUES["web"], "listenOn": "::"}}, "web.listenOn"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(changes: dict[str, Any], where: str) -> None:
    assert set(errors(filled(**changes))) == {where}


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


_OWN = {
    "podLabels": {"cost-centre": "ml"},
    "podAnnotations": {"example.org/scan": "yes"},
    "nodeSelector": {"pool": "portal"},
    "tolerations": [{"key": "portal", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "platform",
}


@pytest.mark.parametrize("role", ["", "web", "beat", "watcher", "migrations", "workers"])
def test_all_roles_take_what_places_pods(role: str) -> None:
    if role == "workers":
        changes = {name: {**worker, **_OWN} for name, worker in VALUES["workers"].items()}
        assert errors(filled(workers=changes)) == []
    else:
        assert errors(filled(**({role: {**VALUES[role], **_OWN}} if role else _OWN))) == []


def test_every_value_has_a_default_and_a_schema() -> None:
    """Of the top and of each part, so that `values.yaml` shows all there is but what a role may have of its own."""
    assert set(SCHEMA["properties"]) - {"global"} == set(VALUES)
    for name, part in VALUES.items():
        known = SCHEMA["properties"][name].get("properties")
        if known and name not in ("affinity", "podLabels"):
            assert set(known) - set(_OWN) == set(part), name


def test_rules_and_dashboards_are_what_the_commands_print() -> None:
    """`manage.py prometheus_rules --portal --format file` and `grafana_dashboard` make them anew."""
    out = io.StringIO()
    call_command("prometheus_rules", "--portal", "--format", "file", stdout=out)
    assert (CHART / "files" / "rules.yaml").read_text() == out.getvalue()

    names = VALUES["metrics"]["dashboards"]["names"]
    files = {path.name for path in (CHART / "files").glob("dashboard-*.json")}
    assert files == {f"dashboard-{name}.json" for name in names}
    for name in names:
        out = io.StringIO()
        call_command("grafana_dashboard", name, stdout=out)
        printed = json.loads(out.getvalue())
        assert json.loads((CHART / "files" / f"dashboard-{name}.json").read_text()) == printed
