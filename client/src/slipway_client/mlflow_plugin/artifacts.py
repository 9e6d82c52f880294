"""The files to serve among what MLflow logged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from slipway_client.errors import Failed

# What MLflow writes beside the model, to load it in Python again.
_ABOUT_THE_MODEL: Final = frozenset(
    {
        "MLmodel",
        "conda.yaml",
        "input_example.json",
        "python_env.yaml",
        "registered_model_meta",
        "requirements.txt",
        "serving_input_example.json",
    }
)


@contextmanager
def model_files(folder: Path) -> Iterator[Path]:
    """Yield the path to push: the model's only file, or a folder of links to all of them."""
    if folder.is_file():
        yield folder
        return
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in _ABOUT_THE_MODEL
    ]
    if not files:
        raise Failed("MLflow logged no file of the model itself.")
    if len(files) == 1:
        yield files[0]
        return
    with tempfile.TemporaryDirectory(prefix="slipway-") as links:
        for path in files:
            link = Path(links) / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
        yield Path(links)
