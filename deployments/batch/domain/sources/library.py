"""The client libraries that workers import: packages as they are installed here, in an archive that they unpack.

All are pure Python, so they run on whatever Python the image of the workers has.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Library:
    """An archive of top-level packages and modules. It has the same bytes for one version of them.

    `left_out` are paths in it. Of the folder `data` it has the files, and the folders named in `kept_data` only.
    """

    packages: tuple[str, ...]
    left_out: frozenset[str] = frozenset()
    data: str = ""
    kept_data: frozenset[str] = frozenset()

    @cached_property
    def archive(self) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
            for name, path in self._files():
                # Without the time of the file.
                file.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        return content.getvalue()

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.archive).hexdigest()

    def _files(self) -> Iterator[tuple[str, Path]]:
        for package in self.packages:
            spec = find_spec(package)
            if spec is None or spec.origin is None:
                raise ModuleNotFoundError(f"{package} is not installed")
            origin = Path(spec.origin)
            # A module may name itself a package (six does), and is a file all the same.
            if origin.name == "__init__.py":
                yield from self._files_in(origin.parent, package)
            else:
                yield f"{package}.py", origin

    def _files_in(self, folder: Path, path: str) -> Iterator[tuple[str, Path]]:
        for item in sorted(folder.iterdir()):
            name = f"{path}/{item.name}"
            if item.is_file():
                if name not in self.left_out:
                    yield name, item
            elif self._keeps(path, name, item.name):
                yield from self._files_in(item, name)

    def _keeps(self, path: str, name: str, folder: str) -> bool:
        if folder == "__pycache__" or name in self.left_out:
            return False
        return path != self.data or folder in self.kept_data
