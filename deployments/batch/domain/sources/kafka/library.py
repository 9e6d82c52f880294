"""The client of Kafka that workers import: kafka-python as it is installed here, in an archive that Python imports from.

The same bytes for one version of it. It is pure Python, so it runs on whatever Python the image of the workers has.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

NAME: Final = "kafka"
# Programs of its own.
_LEFT_OUT: Final = ("cli", "benchmarks", "__pycache__")


@lru_cache(maxsize=1)
def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        _add(file, resources.files(NAME), NAME)
    return content.getvalue()


@lru_cache(maxsize=1)
def digest() -> str:
    return hashlib.sha256(archive()).hexdigest()


def _add(file: zipfile.ZipFile, folder: Traversable, path: str) -> None:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name in _LEFT_OUT or item.name.endswith(".pyc"):
            continue
        if item.is_dir():
            _add(file, item, f"{path}/{item.name}")
        else:
            # Without the time of the file.
            info = zipfile.ZipInfo(f"{path}/{item.name}")
            file.writestr(info, item.read_bytes(), zipfile.ZIP_DEFLATED)
