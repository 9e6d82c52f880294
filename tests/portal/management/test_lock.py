"""What is installed is pinned by hash, and the image has the versions that the tests ran with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EVERYTHING, IMAGE, INSTALLER, NEXT_DJANGO = (
    ROOT / "requirements.lock",
    ROOT / "requirements-image.lock",
    ROOT / "portal" / "management" / "installer.lock",
    ROOT / "portal" / "management" / "next-django.lock",
)


def entries(lock: Path) -> dict[str, str]:
    """Name and version of each entry, with all of its lines."""
    text = lock.read_text().replace("\\\n", " ")
    matches = re.findall(r"^([\w.-]+)==(\S+)(.*)$", text, re.MULTILINE)
    assert len(matches) == len(text.splitlines())
    return {f"{name}=={version}": rest for name, version, rest in matches}


@pytest.mark.parametrize(
    "lock", [EVERYTHING, IMAGE, INSTALLER, NEXT_DJANGO], ids=lambda path: path.name
)
def test_every_package_has_its_hashes_and_no_address(lock: Path) -> None:
    assert all("--hash=sha256:" in rest for rest in entries(lock).values())
    assert "://" not in lock.read_text()


def test_the_image_takes_the_versions_that_the_tests_ran_with() -> None:
    image, everything = entries(IMAGE), entries(EVERYTHING)

    assert image.keys() < everything.keys()
    assert not [name for name in image if name.startswith(("moto==", "pytest==", "supervisor=="))]
