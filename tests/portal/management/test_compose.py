"""docker-compose.yml cannot be run here, so what can be known without running it is checked."""

from __future__ import annotations

import ast
import json
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
_OPTIONAL = ("names", "networks", "optional_secret", "addresses", "secrets_by_name")


def variables_read(*, required_only: bool = False) -> set[str]:
    names = set()
    for name in ("settings.py", "celery_config.py", "alive_file.py"):
        for node in ast.walk(ast.parse((ROOT / "portal" / name).read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="env"), attr=how),
                    args=[ast.Constant(value=str(variable)), *defaults],
                ) if how != "BadEnvironment":
                    has_default = bool(defaults) or bool(node.keywords) or how in _OPTIONAL
                    if not (required_only and has_default):
                        names.add(variable)
    return names


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
    for name in (
        "SLIPWAY_SECRET_KEY",
        "SLIPWAY_OWNER_PASSWORD",
        "SLIPWAY_DATABASE_PASSWORD",
        "POSTGRES_PASSWORD",
        "VALKEY_PASSWORD",
        "S3_ADMIN_SECRET_ACCESS_KEY",
        "AWS_SECRET_ACCESS_KEY",
    ):
        values = re.findall(rf"^ +{name}: (.*)$", SOURCE, re.MULTILINE)

        assert re.search(rf"\$\{{{name}:\?", SOURCE), name
        assert all(re.match(r"\$\{[A-Z0-9_]+:\?", value) for value in values), name


def test_example_environment_names_every_variable_of_the_file() -> None:
    names = set(re.findall(r"\$\{([A-Z0-9_]+)", SOURCE))

    example = (ROOT / "deploy" / "compose.env.example").read_text()

    assert names == set(re.findall(r"^([A-Z0-9_]+)=", example, re.MULTILINE))


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


@pytest.mark.parametrize("name", sorted(yaml.safe_load(SOURCE)["services"]))
def test_every_container_is_confined(name: str, services: dict[str, Any]) -> None:
    service = services[name]

    assert service["cap_drop"] == ["ALL"]
    assert "SYS_ADMIN" not in service.get("cap_add", [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert {"mem_limit", "cpus", "pids_limit"} <= set(service)
    assert not service.get("privileged")


def test_everything_but_the_tls_proxy_listens_on_loopback_only(services: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}

    assert published.pop("proxy") == ["80:80", "443:443"]
    assert services["proxy"]["profiles"] == ["tls"], "not started by default"
    assert set(published) == {"web", "s3", "prometheus"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_only_migrations_run_as_the_owner_of_the_tables(services: dict[str, Any]) -> None:
    owners = [
        role
        for role in PORTAL_ROLES
        if "//slipway_owner:" in services[role]["environment"]["SLIPWAY_DATABASE_URL"]
    ]
    assert owners == ["migrate"]


def test_only_the_bucket_is_prepared_with_the_stores_administrator(
    services: dict[str, Any],
) -> None:
    keys = {role: services[role]["environment"]["AWS_ACCESS_KEY_ID"] for role in PORTAL_ROLES}

    admins = [role for role, key in keys.items() if key.startswith("${S3_ADMIN")]
    assert admins == ["bucket"]
    script = (ROOT / "deploy" / "s3.sh").read_text()
    made = json.loads(script[script.index("{\n") : script.index("\nJSON\n")])
    actions = {identity["name"]: identity["actions"] for identity in made["identities"]}
    assert actions["portal"] == [f"{verb}:slipway-models" for verb in ("Read", "List", "Write")]
    assert all(action.endswith(":slipway-models") for action in actions["setup"])


def test_valkey_demands_its_password(services: dict[str, Any]) -> None:
    assert "requirepass" in services["valkey"]["command"]
    assert "redis://:${VALKEY_PASSWORD:?" in services["web"]["environment"]["SLIPWAY_REDIS_URL"]


def test_images_are_pinned_and_mounted_files_exist(services: dict[str, Any]) -> None:
    """To exact versions; a digest behind one is welcome, and cannot be resolved here."""
    base = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    ours = {"slipway:local"}
    for image in {*base, *(service["image"] for service in services.values())} - ours:
        assert re.search(r":v?\d+\.\d+(\.\d+)?(-[\w.-]+)?(@sha256:[0-9a-f]{64})?$", image), image
    for service in services.values():
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).split(":")[0]
            assert not source.startswith("./") or (ROOT / source).exists(), source


def test_dockerfile_copies_only_what_exists() -> None:
    lines = re.findall(r"^COPY (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    for line in lines:
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
