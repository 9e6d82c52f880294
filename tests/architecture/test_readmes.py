"""The README of each feature: there is one, it is short, and what it names exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.portal.management.test_compose import variables_read

ROOT = Path(__file__).resolve().parents[2]
_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
_PORTAL = (
    "core",
    "audit",
    "accounts",
    "api",
    "ui",
    "notifications",
    "monitoring",
    "doctor",
    "dashboard",
)
_APPS = ("portal", "deployments", "fleet")
FEATURES = [
    *(ROOT / name.replace(".", "/") for c in _CONTRACTS if c["name"] == "Inside a feature" for name in c["containers"]),
    *(ROOT / "portal" / name for name in _PORTAL),
]  # fmt: skip
READMES = sorted(path for app in _APPS for path in (ROOT / app).rglob("README.md"))
_OF_THE_WHOLE = (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md")
_MOST_LINES = 40
_FILE_ENDINGS = "py|html|js|css|md|toml|yaml|yml|json|csv|lock|ipynb"
_PATH = re.compile(rf"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:{_FILE_ENDINGS}))|[\w.-]+(?:/[\w.-]+)+")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_DEFINED = re.compile(
    r"^\s*(?:(?:async )?def|class) (\w+)|^ *(\w+)(?:: [\w\"][^=\n]*)? = |^ +(\w+): [A-Za-z\"]\S*$",
    re.MULTILINE,
)


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_each_feature_has_a_readme() -> None:
    assert [ids(folder) for folder in FEATURES if not (folder / "README.md").is_file()] == []


def test_features_are_all_packages_with_layers() -> None:
    """A new package is missed by nobody: that of `deployments` or `fleet` is in a contract, that of `portal` here."""
    layers = {"api", "web", "services", "selectors", "gateways", "domain"}
    found = {
        folder
        for app in _APPS[1:]
        for folder in (ROOT / app).iterdir()
        if any((folder / layer / "__init__.py").is_file() for layer in layers)
    }
    flat = {folder for folder in (ROOT / "portal").iterdir() if (folder / "__init__.py").is_file()}

    assert found | flat - {ROOT / "portal" / "management"} == set(FEATURES)


def test_readmes_are_short_and_say_what_to_touch() -> None:
    texts = {ids(path): path.read_text() for path in READMES}

    assert [name for name, text in texts.items() if len(text.splitlines()) > _MOST_LINES] == []
    assert [name for name, text in texts.items() if "\n## What to touch" not in text] == []
    assert [name for name, text in texts.items() if "\nUsed by " not in text] == []


def test_what_a_readme_names_exists() -> None:
    unknown = {ids(path): list_unknown(path.read_text(), path.parent) for path in READMES}

    assert {name: found for name, found in unknown.items() if found} == {}


def test_what_the_documents_of_the_whole_name_exists() -> None:
    unknown = {ids(path): list_unknown(path.read_text(), ROOT) for path in _OF_THE_WHOLE}

    assert unknown == {ids(path): [] for path in _OF_THE_WHOLE}


@pytest.mark.parametrize(
    "wrong",
    [
        "domain/decided.py",
        "deployments/rollouts/services/reconciles.py",
        "services/gone/",
        "reconcile.sweeps",
        "decide.Decisions",
        "deployments.states.ROLLOUTS",
        "deployments.tasks.sweep_nothing",
        "RolloutPhases",
        "sweep_rollout_now",
        "SLIPWAY_NO_SUCH_SETTING",
    ],
)
def test_wrong_path_or_name_in_a_readme_is_refused(wrong: str) -> None:
    right = "`domain/decide.py` has `Decision`, `reconcile.sweep` and `deployments.states.ROLLOUT`."
    folder = ROOT / "deployments" / "rollouts"

    assert list_unknown(f"{right} Also `{wrong}`.", folder) == [wrong]


def list_unknown(text: str, folder: Path) -> list[str]:
    """List paths and Python names in backticks that do not exist."""
    named = re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    return [name for name in named if not _exists(name, folder)]


def _exists(name: str, folder: Path) -> bool:
    if name.startswith("SLIPWAY_"):
        return name.partition("=")[0] in _settings()
    if _PATH.fullmatch(name):
        return any((base / name).exists() for base in (folder, ROOT))
    if not _NAME.fullmatch(name):
        # A command, an address, a value: other tests have those.
        return True
    parts = name.split(".")
    if len(parts) == 1:
        here = (folder / f"{name}.py", ROOT / name)
        return name in _definitions(folder) or any(path.exists() for path in here)
    if name[0].isupper() and _definitions(folder).issuperset(parts):
        return True
    return any(_defines(module, parts) for module in _find_modules(parts, folder))


def _find_modules(parts: list[str], folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield files that a dotted name may begin with, and how many of its parts each takes."""
    for taken in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:taken])
        yield from (
            (file, taken)
            for file in (base.with_suffix(".py"), base / "__init__.py")
            if file.is_file()
        )
    if folder != ROOT:
        yield from ((file, 1) for file in folder.rglob(f"{parts[0]}.py"))
        yield from ((file, 1) for file in folder.rglob(f"{parts[0]}/__init__.py"))


def _defines(module: tuple[Path, int], parts: list[str]) -> bool:
    path, taken = module
    body: list[ast.stmt] = ast.parse(path.read_text()).body
    for part in parts[taken:]:
        found = [statement for statement in body if part in _names_of(statement)]
        if not found:
            return False
        body = found[0].body if isinstance(found[0], ast.ClassDef) else []
    return True


def _names_of(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    targets = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [getattr(statement, "target", None)]
    )
    return {target.id for target in targets if isinstance(target, ast.Name)}


@cache
def _settings() -> frozenset[str]:
    """Name the settings of the portal, and those of a run of the tests on a real cluster."""
    files = [
        *(ROOT / "tests" / "cluster").glob("*.py"),
        *(ROOT / "tests" / "contract").glob("*.py"),
        *(ROOT / "tests" / "engines").glob("*.py"),
    ]
    of_tests = re.findall(r"SLIPWAY_\w+", " ".join(path.read_text() for path in files))
    return frozenset({*variables_read(), *of_tests})


@cache
def _definitions(folder: Path) -> frozenset[str]:
    """Name what a feature's files define, and the rows, columns and states of its app."""
    if folder == ROOT:
        return frozenset()
    app = ROOT / folder.relative_to(ROOT).parts[0]
    files = [*folder.rglob("*.py"), *(app / "models").rglob("*.py"), app / "states.py"]
    texts = [path.read_text() for path in files if path.is_file()]
    return frozenset(name for text in texts for found in _DEFINED.findall(text) for name in found)
