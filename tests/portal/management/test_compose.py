"""docker-compose.yml cannot be run here, so what can be known without running it is checked."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyOptions

from portal import celery_config

ROOT = Path(__file__).resolve().parents[3]
SOURCE = (ROOT / "docker-compose.yml").read_text()
PORTAL_ROLES = (
    "web",
    "worker-delivery",
    "worker-telemetry",
    "worker-artifacts",
    "beat",
    "watcher",
    "migrate",
    "bucket",
)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load(SOURCE)["services"])


# Readers whose variable may be left out.
_OPTIONAL = ("names", "optional_secret")


def variables_read(*, required_only: bool = False) -> set[str]:
    found = set()
    for name in ("settings.py", "celery_config.py"):
        for node in ast.walk(ast.parse((ROOT / "portal" / name).read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="env"), attr=how),
                    args=[ast.Constant(value=str(variable)), *defaults],
                ):
                    has_default = bool(defaults) or bool(node.keywords) or how in _OPTIONAL
                    if not (required_only and has_default):
                        found.add(variable)
    return found


def interpolated() -> str:
    """As Compose reads it: defaults taken, a word for each variable that must be set, merges done."""
    taken = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", SOURCE)
    filled = re.sub(r"\$\{(\w+):\?.*?\}", r"\1", taken)
    return yaml.safe_dump(yaml.safe_load(filled))


def test_file_follows_the_compose_specification() -> None:
    compose = PyOptions().from_yaml(interpolated())

    compose.validate()
    assert set(PORTAL_ROLES) <= set(compose.service_names())


@pytest.mark.parametrize("role", PORTAL_ROLES)
def test_portal_containers_set_what_settings_read_and_nothing_else(
    role: str, services: dict[str, Any]
) -> None:
    environment = services[role]["environment"]

    ours = {name for name in environment if name.startswith("SLIPWAY_")}

    assert ours <= variables_read()
    assert variables_read(required_only=True) <= ours
    assert "SLIPWAY_DEMO" not in environment
    assert "SLIPWAY_DEBUG" not in environment


def test_no_secret_is_written_into_the_file() -> None:
    for name in ("SLIPWAY_SECRET_KEY", "POSTGRES_PASSWORD", "AWS_SECRET_ACCESS_KEY"):
        values = re.findall(rf"^ +{name}: (.*)$", SOURCE, re.MULTILINE)

        assert values, name
        assert all(value.startswith(f"${{{name}:?") for value in values)


def test_example_environment_names_every_variable_the_file_asks_for() -> None:
    asked = set(re.findall(r"\$\{([A-Z0-9_]+)", SOURCE))

    example = (ROOT / "deploy" / "compose.env.example").read_text()

    assert asked == set(re.findall(r"^([A-Z0-9_]+)=", example, re.MULTILINE))


def test_each_queue_has_its_worker(services: dict[str, Any]) -> None:
    queues = {route["queue"] for route in celery_config.task_routes.values()}
    queues.add(celery_config.task_default_queue)

    served = [
        queue for names in re.findall(r"--queues (\S+)", SOURCE) for queue in names.split(",")
    ]

    assert sorted(served) == sorted(queues)


def test_every_dependency_is_a_service_that_can_meet_it(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services, f"{name} needs {needed}"
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], needed


def test_images_are_pinned_and_mounted_files_exist(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert not service["image"].endswith(":latest"), name
        assert ":" in service["image"], name
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).split(":")[0]
            assert not source.startswith("./") or (ROOT / source).exists(), source


def test_dockerfile_copies_only_what_exists() -> None:
    lines = re.findall(r"^COPY (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    for line in lines:
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
