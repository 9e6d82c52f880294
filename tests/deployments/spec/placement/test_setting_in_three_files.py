"""A setting of the placement is one file, its field and line in the catalogue, and a field of batch jobs that have it."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Each runs a pytest of its own, whose database has the same name.
pytestmark = pytest.mark.xdist_group("a product of its own")
ROOT = Path(__file__).resolve().parents[4]
_MODULE = "deployments/spec/domain/placement/settings/tenancy.py"
_LIST = "deployments/spec/domain/placement/catalogue.py"
_BATCH = "deployments/batch/domain/settings.py"
_IMPORTS = (
    "from deployments.spec.domain.placement.settings import tenancy\n"
    "from deployments.spec.domain.placement.settings.tenancy import Tenancy\n"
)
_FIELD = '    tenancy: Tenancy = "default"\n'
# The acceptance of the rebuild: a new setting touches at most as many files of the product.
_MOST_FILES = 6


def _add_setting(tree: Path) -> None:
    shutil.copy(Path(__file__).with_name("tenancy.py"), tree / _MODULE)
    _insert(tree / _LIST, "    pre_pull: PrePull = False\n", _FIELD)
    _insert(tree / _LIST, "    image_pre_pull.SETTING,\n", "    tenancy.SETTING,\n")
    _insert(tree / _LIST, "from portal.core.definitions import Definition, Rule\n", _IMPORTS)
    _insert(tree / _BATCH, "    device_claims: DeviceClaims = False\n", _FIELD)
    _insert(tree / _BATCH, "from portal.core import definitions\n", _IMPORTS)


def _insert(path: Path, after: str, line: str) -> None:
    text = path.read_text()
    assert text.count(after) == 1, (path, after)
    path.write_text(text.replace(after, after + line))


def _changed(tree: Path) -> set[str]:
    paths = [path for path in (tree / "deployments").rglob("*") if path.is_file()]
    names = [str(path.relative_to(tree)) for path in paths]
    return {
        name
        for name in names
        if not (ROOT / name).exists() or not filecmp.cmp(ROOT / name, tree / name, shallow=False)
    }


def test_a_made_up_setting_is_offered_checked_fitted_priced_written_and_described(
    tmp_path: Path,
) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "deployments", tmp_path / "deployments", ignore=ignored)
    _add_setting(tmp_path)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-o", f"pythonpath={tmp_path} . client/src", "-o", "django_find_project=false"),
            "tests/deployments/spec/placement/with_tenancy.py",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert _changed(tmp_path) == {_MODULE, _LIST, _BATCH}
    assert len(_changed(tmp_path)) <= _MOST_FILES
    assert "9 passed" in done.stdout, done.stdout[-6000:]
