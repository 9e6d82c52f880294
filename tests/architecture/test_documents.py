"""Documents say what is so: commands exist, links lead somewhere, settings are all described."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.portal.management.test_compose import variables_read

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "client").glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_TOPS = (
    "portal",
    "deployments",
    "fleet",
    "templates",
    "static",
    "tests",
    "client",
    "docs",
    "deploy",
)
_NOT_OURS = {"migrate", "createsuperuser", "collectstatic", "shell", "check", "makemigrations"}


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"`make ([a-z-]+)", path.read_text()))
    named |= set(re.findall(r"^(?:\w+=\S+ )*make ([a-z-]+)", path.read_text(), re.MULTILINE))

    assert named <= TARGETS


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_every_management_command_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", path.read_text())) - _NOT_OURS
    there = {command.stem for command in ROOT.glob("*/management/commands/*.py")}

    assert named <= there


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_every_module_that_is_run_exists(path: Path) -> None:
    for module in re.findall(
        r"python -m ((?:portal|fleet|deployments|tests)[\w.]*)", path.read_text()
    ):
        place = ROOT / module.replace(".", "/")

        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_every_program_of_the_environment_that_is_named_is_installed(path: Path) -> None:
    named = set(re.findall(r"\.venv/bin/([\w.-]+)", path.read_text()))

    assert [program for program in sorted(named) if not (PROGRAMS / program).exists()] == []


def test_hooks_of_pre_commit_fetch_nothing_and_leave_migrations_alone() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = {hook["id"]: hook for repo in repositories for hook in repo["hooks"]}

    assert [repo["repo"] for repo in repositories] == ["local"]
    assert {hook["language"] for hook in hooks.values()} == {"system"}
    for name in ("ruff-check", "ruff-format"):
        program, *options = shlex.split(hooks[name]["entry"])
        command = [str(PROGRAMS / Path(program).name), *options, "--diff"]
        command.append("fleet/migrations/0001_schema.py")
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

        assert (done.returncode, done.stdout) == (0, ""), name


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_every_relative_link_leads_to_a_file(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=ids)
def test_every_file_that_is_named_exists(path: Path) -> None:
    """In full, or from inside an app as the architecture names them: `registry/web/upload.py`."""
    roots = [ROOT, ROOT / "deployments", ROOT / "fleet", ROOT / "portal", ROOT / "templates"]

    for name in re.findall(r"`([\w-][\w./-]*/[\w.-]+\.(?:py|html|js|toml|yml))`", path.read_text()):
        assert any((root / name).exists() for root in roots), name


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_path_of_the_map_exists(document: str) -> None:
    """Folders too, and names without their folder, where a row names several of one folder."""
    named = re.findall(
        r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|html|js|toml|yml|yaml|json|md)))`",
        (ROOT / document).read_text(),
    )
    roots = [ROOT, *(ROOT / top for top in _TOPS)]
    names = {path.name for root in roots[1:] for path in root.rglob("*")}
    names |= {path.name for path in ROOT.iterdir()}

    def exists(path: str) -> bool:
        short = path.rstrip("/")
        return short in names or any((root / short).exists() for root in roots)

    assert len(named) > 100
    assert [path for path in named if not exists(path)] == []


def test_readme_is_short_and_begins_with_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()

    assert len(readme.splitlines()) < 120
    assert readme.index("make demo") < readme.index("make test")


def test_every_setting_is_described_and_nothing_else() -> None:
    described = set(
        re.findall(
            r"^\| `(SLIPWAY_\w+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE
        )
    )

    assert described == {name for name in variables_read() if name.startswith("SLIPWAY_")}


def test_decisions_are_short_and_numbered_without_gaps() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))

    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        assert len(path.read_text().splitlines()) <= 40, path.name


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=ids)
def test_notebook_is_kept_without_its_output(path: Path) -> None:
    notebook = json.loads(path.read_text())

    assert not any(cell.get("outputs") for cell in notebook["cells"])
