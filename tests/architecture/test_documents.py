"""Documents say what is so: commands exist, links lead somewhere, settings are all described."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
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
TEXTS = {path: path.read_text() for path in DOCUMENTS}
DECISIONS = {int(path.name[:4]): path for path in sorted((ROOT / "docs" / "adr").glob("0*.md"))}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_NOT_OURS = {"migrate", "createsuperuser", "collectstatic", "shell", "check", "makemigrations"}


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def list_wrong(
    pattern: str, is_right: Callable[[Path, str], bool], paths: Iterable[Path] = TEXTS
) -> list[str]:
    """List what the documents name by the pattern and what is not so, each with its document."""
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for name in sorted(set(re.findall(pattern, TEXTS[path], re.MULTILINE)))
        if not is_right(path, name)
    ]


def test_every_make_target_that_is_named_exists() -> None:
    pattern = r"(?:`|^(?:\w+=\S+ )*)make ([a-z-]+)"

    assert list_wrong(pattern, lambda _, target: target in TARGETS) == []
    assert list_wrong(pattern, lambda _, target: target != "demo") != []


def test_every_management_command_that_is_named_exists() -> None:
    there = {command.stem for command in ROOT.glob("*/management/commands/*.py")} | _NOT_OURS

    assert list_wrong(r"manage\.py ([a-z_]+)", lambda _, command: command in there) == []


def test_every_module_that_is_run_exists() -> None:
    roots = [ROOT, *(ROOT / house / "src" for house in install.HOUSES)]

    def can_be_run(_: Path, module: str) -> bool:
        places = [root / module.replace(".", "/") for root in roots]
        return any(
            place.with_suffix(".py").exists() or (place / "__main__.py").exists()
            for place in places
        )

    modules = r"python -m ((?:portal|fleet|deployments|tests|slipway_)[\w.]*)"
    assert list_wrong(modules, can_be_run) == []


def test_every_program_of_the_environment_that_is_named_is_installed() -> None:
    assert list_wrong(r"\.venv/bin/([\w.-]+)", lambda _, name: (PROGRAMS / name).exists()) == []


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


def test_every_relative_link_leads_to_a_file() -> None:
    """The change log names decisions of its time, which may have left the shelf."""

    def leads_somewhere(path: Path, target: str) -> bool:
        left = "docs/adr/" if path.name == "CHANGELOG.md" else "\0"
        is_elsewhere = re.match(r"[a-z]+:", target) or target.startswith(left)
        return bool(is_elsewhere) or (path.parent / target).exists()

    assert list_wrong(r"\]\(([^)#]+?)(?:#[^)]*)?\)", leads_somewhere) == []


def test_every_file_that_is_named_exists() -> None:
    """Names are full, or begin inside an app: `registry/web/upload.py`. READMEs of features: test_readmes.py."""
    roots = [
        ROOT,
        *(ROOT / house / "src" for house in install.HOUSES),
        ROOT / "deployments",
        ROOT / "fleet",
        ROOT / "portal",
        ROOT / "templates",
    ]

    def is_there(_: Path, name: str) -> bool:
        return any((root / name).exists() for root in roots)

    others = sorted({*DOCUMENTS} - {*READMES})
    names = r"`([\w-][\w./-]*/[\w.-]+\.(?:py|html|js|toml|yml))`"
    assert list_wrong(names, is_there, others) == []


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
