from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from portal.management import install, interpreters


def _interpreter(folder: Path, name: str, version: str) -> Path:
    """A program that answers as an interpreter of this version would."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {version.replace('.', ' ')} {path}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(interpreters, "_SYSTEM_FOLDERS", ())
    return tmp_path


def test_interpreter_on_the_path_is_used(empty_machine: Path) -> None:
    path = _interpreter(empty_machine / "path", "python3.13", "3.13")

    assert interpreters.find((3, 13)) == str(path)
    assert interpreters.find((3, 12)) is None


def test_interpreter_of_a_version_manager_is_used(empty_machine: Path) -> None:
    folder = empty_machine / "home" / ".pyenv" / "versions" / "3.14.0" / "bin"
    path = _interpreter(folder, "python3", "3.14")

    assert interpreters.find((3, 14)) == str(path)


def test_interpreter_that_cannot_make_environments_is_left_out(empty_machine: Path) -> None:
    path = _interpreter(empty_machine / "path", "python3.12", "3.12")
    path.write_text("#!/bin/sh\necho no module named ensurepip >&2\nexit 1\n")

    assert interpreters.find((3, 12)) is None


def test_name_that_lies_about_the_version_is_left_out(empty_machine: Path) -> None:
    _interpreter(empty_machine / "path", "python3.12", "3.9")

    assert interpreters.find((3, 12)) is None


@pytest.mark.parametrize(
    ("built_with", "version", "library", "is_own"),
    [
        ("'--enable-shared'", "3.11", "3.11", False),
        (None, "3.13", "3.13", False),
        ("'--enable-shared' '--enable-optimizations'", "3.11", "3.11", True),
        ("'--enable-shared'", "3.9", "3.9", True),
        ("'--enable-shared'", "3.11", "3.13", True),
    ],
)
def test_the_distributions_is_used_where_this_one_is_slow_and_that_one_lacks_nothing(
    built_with: str | None,
    version: str,
    library: str,
    is_own: bool,
    empty_machine: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = _interpreter(empty_machine / "usr", "python3", version)
    libraries = empty_machine / "lib"
    (libraries / "x86_64-linux-gnu").mkdir(parents=True)
    (libraries / "x86_64-linux-gnu" / f"libpython{library}.so.1.0").touch()
    monkeypatch.setattr(interpreters, "_OF_THE_DISTRIBUTION", system)
    monkeypatch.setattr(interpreters, "_LIBRARIES", libraries)
    monkeypatch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": built_with}.__getitem__)
    own = getattr(sys, "_base_executable", sys.executable)

    assert interpreters.find_fast() == (own if is_own else str(system))


@pytest.mark.parametrize("answer", [None, "echo no module named ensurepip >&2; exit 1"])
def test_this_one_is_used_where_the_distribution_has_none_that_makes_environments(
    answer: str | None, empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = empty_machine / "python3"
    if answer:
        system.write_text(f"#!/bin/sh\n{answer}\n")
        system.chmod(0o755)
    monkeypatch.setattr(interpreters, "_OF_THE_DISTRIBUTION", system)
    monkeypatch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": ""}.__getitem__)

    assert interpreters.find_fast() == getattr(sys, "_base_executable", sys.executable)


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0)])
def test_first_line_of_a_refusal_names_the_interpreter_to_use(
    version: tuple[int, int, int], empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interpreter(empty_machine / "path", "python3.13", "3.13")
    path = _interpreter(empty_machine / "path", "python3.11", "3.11")
    monkeypatch.setattr(sys, "version_info", version)

    with pytest.raises(SystemExit) as refused:
        install.check_machine()

    first_line = str(refused.value.code).splitlines()[0]
    assert first_line.startswith(f"Run: make demo PYTHON={path} ")


def test_refusal_without_another_interpreter_says_how_to_get_one(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))

    with pytest.raises(SystemExit) as refused:
        install.check_machine()

    assert "Python 3.11, 3.12 or 3.13; this is 3.14.0" in str(refused.value.code)
    assert "uv python install 3.12" in str(refused.value.code)


def test_environment_of_another_version_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install.is_usable(Path(sys.executable))

    monkeypatch.setattr(sys, "version_info", (3, 99, 0))

    assert not install.is_usable(Path(sys.executable))
    assert not install.is_usable(tmp_path / "absent")


def test_the_client_is_linked_from_its_sources(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"

    install.link_houses(python)

    find = "import importlib.util; print(importlib.util.find_spec('slipway_client').origin)"
    found = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True)
    origin = Path(install.__file__).parents[2] / "client" / "src" / "slipway_client" / "__init__.py"
    assert Path(found.stdout.strip()) == origin
    script = environment / "bin" / "slipway"
    assert script.read_text().startswith(f"#!{python}\n")
    assert script.stat().st_mode & 0o111
