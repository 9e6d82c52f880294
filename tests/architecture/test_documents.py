"""Documents say what is so: commands exist, links lead somewhere, settings are all described."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from portal.management import install
from tests.portal.management.test_compose import variables_read

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
READMES = sorted(
    path for app in ("portal", "deployments", "fleet") for path in (ROOT / app).rglob("README.md")
)
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for house in install.HOUSES for path in (ROOT / house).glob("*.md")),
        *(ROOT / "docs").rglob("*.md"),
        *READMES,
    ]
)
DECISIONS = {int(path.name[:4]): path for path in sorted((ROOT / "docs" / "adr").glob("0*.md"))}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
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
        r"python -m ((?:portal|fleet|deployments|tests|slipway_)[\w.]*)", path.read_text()
    ):
        roots = [ROOT, *(ROOT / house / "src" for house in install.HOUSES)]
        places = [root / module.replace(".", "/") for root in roots]

        assert any(
            place.with_suffix(".py").exists() or (place / "__main__.py").exists()
            for place in places
        ), module


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
    """The change log names decisions of its time, which may have left the shelf."""
    left = "docs/adr/" if path.name == "CHANGELOG.md" else "\0"

    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
        if not re.match(r"[a-z]+:", target) and not target.startswith(left):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", sorted({*DOCUMENTS} - {*READMES}), ids=ids)
def test_every_file_that_is_named_exists(path: Path) -> None:
    """Names are full, or begin inside an app: `registry/web/upload.py`. READMEs of features: test_readmes.py."""
    roots = [
        ROOT,
        *(ROOT / house / "src" for house in install.HOUSES),
        ROOT / "deployments",
        ROOT / "fleet",
        ROOT / "portal",
        ROOT / "templates",
    ]

    for name in re.findall(r"`([\w-][\w./-]*/[\w.-]+\.(?:py|html|js|toml|yml))`", path.read_text()):
        assert any((root / name).exists() for root in roots), name


def test_readme_is_short_and_begins_with_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()

    assert len(readme.splitlines()) < 120
    assert readme.index("make demo") < readme.index("make test")


def test_architecture_is_a_page_and_contributing_is_short() -> None:
    """Paths of files are in the READMEs of features."""
    architecture = (ROOT / "docs" / "architecture.md").read_text()

    assert len(architecture.splitlines()) <= 110
    assert re.findall(r"`[\w.-]+/[\w./-]+\.py`", architecture) == []
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 110


@pytest.mark.parametrize("app", ["deployments", "fleet"])
def test_order_of_packages_is_that_of_the_contracts(app: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    order = re.sub(r"\[(\w+)\]\([^)]*\)", r"\1", text.partition(f"**{app}**, ")[2])
    shown = [
        {name.strip() for name in layer.split("|")}
        for layer in order.partition(":")[2].partition("\n\n")[0].split("→")
    ]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [
        contract["layers"]
        for contract in contracts["contracts"]
        if contract["name"] == f"{app}: features are layered"
    ]
    named = {"apps", "urls", "api_urls", "management", "tasks", "rejections", "audit_actions"}
    enforced = [{name.strip() for name in layer.split("|")} - named for layer in layers]

    assert shown == [layer for layer in enforced if layer]


def test_every_setting_is_described_and_nothing_else() -> None:
    described = set(
        re.findall(
            r"^\| `(SLIPWAY_\w+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE
        )
    )

    assert described == {name for name in variables_read() if name.startswith("SLIPWAY_")}


def test_decisions_are_short_and_each_is_once_on_the_shelf() -> None:
    shelf = (ROOT / "docs" / "adr" / "README.md").read_text()
    listed = re.findall(r"^- \[(\d+)\]\((\S+)\): (.+)$", shelf, re.MULTILINE)

    assert sorted(name for _, name, _ in listed) == [path.name for path in DECISIONS.values()]
    for number, name, title in listed:
        lines = (ROOT / "docs" / "adr" / name).read_text().splitlines()
        assert lines[0] == f"# {number}. {title}"
        assert int(name[:4]) == int(number)
        assert len(lines) <= 40, name


def test_every_decision_that_is_named_is_on_the_shelf() -> None:
    """Documents, code and tests are read; what the change log says of its time stays as it was."""
    folders = [folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name[0] != "."]
    code = [path for folder in folders if folder.name != "var" for path in folder.rglob("*.py")]
    named = [
        (ids(path), int(number))
        for path in [*code, *(path for path in DOCUMENTS if path.name != "CHANGELOG.md")]
        for number in re.findall(r"(?:\bADRs? |adr/)(\d+)\b", path.read_text())
    ]

    assert len(named) > 50
    assert [(name, number) for name, number in named if number not in DECISIONS] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=ids)
def test_notebook_is_kept_without_its_output(path: Path) -> None:
    notebook = json.loads(path.read_text())

    assert not any(cell.get("outputs") for cell in notebook["cells"])
