"""A kind of access is one file and its line in the catalogue: spec, REST, forms, manifests and pages follow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Each runs a pytest of its own, whose database has the same name.
pytestmark = pytest.mark.xdist_group("a product of its own")
ROOT = Path(__file__).resolve().parents[3]
_LIST = Path("deployments/access/domain/catalogue.py")
_MODULE = Path("deployments/access/domain/kinds/url_keys.py")
_LAST = "    provider_tokens.KIND,\n"


def _add_kind(tree: Path) -> None:
    shutil.copy(Path(__file__).with_name("url_keys.py"), tree / _MODULE)
    text = (tree / _LIST).read_text()
    assert text.count(_LAST) == 1
    text = text.replace(_LAST, f"{_LAST}    url_keys.KIND,\n")
    text = text.replace(
        "open_address, provider_tokens\n", "open_address, provider_tokens, url_keys\n"
    )
    (tree / _LIST).write_text(text)


def test_a_made_up_kind_is_offered_accepted_checked_written_and_counted(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "deployments", tmp_path / "deployments", ignore=ignored)
    _add_kind(tmp_path)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-o", f"pythonpath={tmp_path} . client/src", "-o", "django_find_project=false"),
            "tests/deployments/access/with_url_keys.py",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "6 passed" in done.stdout, done.stdout[-6000:]
