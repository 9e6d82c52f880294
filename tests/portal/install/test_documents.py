"""docs/install.md, docs/operations.md and the guide for platform engineers: every command is one that its program takes, and every document in them is what the code makes."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command, get_commands, load_command_class

from deployments import states
from deployments.registry.gateways import bucket_policy
from fleet.actions.domain.states import ActionState
from portal.accounts.models import User
from portal.doctor import registry
from tests.accounts import make_team, make_user
from tests.portal.management.test_chart import SCHEMA, VALUES, errors

ROOT = Path(__file__).resolve().parents[3]
INSTALL = (ROOT / "docs" / "install.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
GUIDE = (ROOT / "docs" / "guide-platform-engineer.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.+?)^```$", text, re.MULTILINE | re.DOTALL)


def manage_commands() -> list[str]:
    lines = [
        line
        for text in (INSTALL, OPERATIONS, GUIDE)
        for block in blocks(text, "bash")
        for line in block.splitlines()
    ]
    named = [line.partition("manage.py ")[2] for line in lines if "manage.py " in line]
    return named + re.findall(r"`python manage\.py ([^`]+)`", INSTALL + OPERATIONS)


@pytest.mark.parametrize("line", sorted(set(manage_commands())))
def test_every_command_takes_its_arguments(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = load_command_class(get_commands()[name], name)
    parser = command.create_parser("manage.py", name)

    parser.parse_args(arguments)  # exits with a message where it does not


@pytest.mark.django_db
@pytest.mark.parametrize(
    "line",
    [
        line.partition("manage.py ")[2]
        for block in blocks(GUIDE, "bash")
        for line in block.splitlines()
        # Those of the client are run by tests/client/test_guides.py.
        if not line.startswith("slipway ")
    ],
)
def test_the_commands_of_the_guide_run(line: str) -> None:
    """On a new installation, about which doctor has something to say."""
    make_team(slug="vision")
    make_user(username="ana")
    name, *arguments = shlex.split(line)
    out = io.StringIO()

    if line == "doctor":
        with pytest.raises(CommandError, match="checks failed"):
            call_command(name, *arguments, stdout=out)
    else:
        call_command(name, *arguments, stdout=out)

    is_silent = name in ("load_prices", "deactivate_person", "audit_export")
    assert is_silent or out.getvalue()
    assert User.objects.get(username="ana").is_active is (name != "deactivate_person")


def test_doctor_has_the_areas_that_are_named() -> None:
    named = re.findall(r'--area ("[^"]+"|[\w-]+)', INSTALL + OPERATIONS)

    assert {name.strip('"') for name in named} <= set(registry.AREAS)
    assert len(named) > 8


def test_the_portals_policy_is_what_the_command_prints() -> None:
    out = io.StringIO()
    (line,) = {
        line for line in manage_commands() if line.startswith("aws_policy") and " portal" in line
    }
    call_command(*shlex.split(line), stdout=out)

    printed = json.loads(out.getvalue())
    documents = [json.loads(block) for block in blocks(INSTALL, "json")]
    assert printed in documents
    writers = ["arn:aws:iam::111122223333:role/slipway"]
    assert bucket_policy.statement("slipway-models", writers) in documents


def test_the_values_are_valid() -> None:
    first, *further = (yaml.safe_load(block) for block in blocks(INSTALL, "yaml"))
    assert further

    for block in (first, *further):
        values = _merged(_merged(VALUES, first), block)
        assert errors(values) == []
        assert set(block) <= set(SCHEMA["properties"])


def test_states_that_do_not_move_on_are_states() -> None:
    enums: dict[str, Any] = {
        "version": states.VersionState,
        "import": states.ImportState,
        "change request": states.ChangeState,
        "deployment": states.DeploymentState,
        "rollout": states.RolloutPhase,
        "fleet action": ActionState,
    }
    rows = re.findall(r"^\| ([a-z ]+) \| (.+?) \|", OPERATIONS, re.MULTILINE)
    named = [(what, state) for what, cell in rows for state in re.findall(r"\*([a-z]+)\*", cell)]

    assert {what for what, _ in named} == set(enums)
    for what, state in named:
        assert state in set(enums[what]), f"{what} {state}"


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """As Helm merges values."""
    made = dict(base)
    for key, value in changes.items():
        old = made.get(key)
        made[key] = (
            _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return made
