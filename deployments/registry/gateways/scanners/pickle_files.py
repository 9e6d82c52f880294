"""Files for scanners that choose their reader by a file's name, and know no arrays of joblib."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from deployments.registry.domain.hugging_face import safetensors
from deployments.registry.domain.pickles import opening
from deployments.registry.domain.scanning import content, pickle_rules, rules
from deployments.registry.gateways.scanners import ScanTarget

_NUMPY: Final = b"\x93NUMPY"


def may_hold_pickles(target: ScanTarget) -> bool:
    with target.open() as file:
        head = file.read(rules.HEAD_BYTES)
    if safetensors.may_be_safetensors(head):
        # Some lengths of the header begin as a pickle does. Our own rules look for calls all the same.
        return target.is_pickle
    is_readable_archive = content.archive(head) == "zip"
    return target.is_pickle or is_readable_archive or pickle_rules.may_be_pickled(target.name, head)


@contextmanager
def named_by_content(target: ScanTarget) -> Iterator[Path]:
    """Yield the path of the file in the working folder of the sandbox, with the suffix of what its bytes are.

    Raises OSError for one that is read in ranges and is larger than a file of the sandbox may be.
    """
    with target.open() as file:
        head = file.read(rules.HEAD_BYTES)
        file.seek(0)
        if content.archive(head) == "zip":
            path = _copy(target, Path("scanned.zip"))
        elif head.startswith(_NUMPY):
            path = _copy(target, Path("scanned.npy"))
        else:
            path = Path("scanned.pkl")
            opening.write_opcodes(file, target.size, path)
    try:
        yield path
    finally:
        path.unlink()


def _copy(target: ScanTarget, path: Path) -> Path:
    if target.path is not None:
        path.symlink_to(target.path)
    else:
        with target.open() as file, path.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    return path
