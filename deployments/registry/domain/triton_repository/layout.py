"""The models of a Triton repository, by the paths of its files alone.

Accepted are a repository (NAME/config.pbtxt, NAME/1/model.onnx), the directory of one model
(config.pbtxt, 1/model.onnx) and a model without directories (config.pbtxt, model.py), each with or
without folders around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from deployments.registry.domain.artifacts.files import is_clutter

CONFIG_FILE: Final = "config.pbtxt"
# Triton ignores directories with a leading zero.
_VERSION: Final = re.compile(r"[1-9][0-9]{0,17}")
# Files of the default names of Triton's backends: a model without config.pbtxt is recognised by them.
_MODEL_FILES: Final = frozenset(
    {"model.onnx", "model.plan", "model.pt", "model.py", "model.xml", "model.dali", "dali.py"}
    | {"xgboost.json", "xgboost.ubj", "checkpoint.tl"}
)
# Directories beside the versions that Triton reads.
_BESIDE_VERSIONS: Final = ("warmup/", "initial_state/")
# Configurations for --model-config-name, which the portal uses itself.
_CONFIGS: Final = "configs/"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The folder of a model. `root` is "" or ends with "/". `files` maps paths below Triton's model directory
    to paths of the artifact, without the configuration; `config` is the configuration's path in the
    artifact, or empty.
    """

    root: str
    config: str
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the directory; empty at the top of the artifact."""
        return PurePosixPath(self.root).name

    @property
    def parent(self) -> str:
        return str(PurePosixPath(self.root).parent) if self.root else ""

    @property
    def versions(self) -> tuple[int, ...]:
        return tuple(
            sorted({int(path.partition("/")[0]) for path in self.files if _in_version(path)})
        )

    def files_of(self, version: int) -> dict[str, str]:
        """Map each path below the directory of the version to its source."""
        prefix = f"{version}/"
        return {
            path.removeprefix(prefix): source
            for path, source in self.files.items()
            if path.startswith(prefix)
        }


def find(paths: Iterable[str]) -> tuple[ModelFolder, ...]:
    """Find the models of a Triton repository. Empty if the files are none."""
    kept = [path for path in sorted(paths) if not is_clutter(path)]
    roots = _roots_with_config(kept)
    roots |= _roots_without_config(kept, roots)
    return tuple(_folder(root, kept) for root in sorted(roots))


def without_versions(folder: ModelFolder, beside: Sequence[str]) -> ModelFolder:
    """Return the folder as version 1 of its model, if it has no versions. `beside` are files that belong into
    the directory of the model.
    """
    if folder.versions:
        return folder
    placed = {
        path if path in beside or path.startswith(_BESIDE_VERSIONS) else f"1/{path}": source
        for path, source in folder.files.items()
    }
    return ModelFolder(folder.root, folder.config, placed)


def outside(paths: Iterable[str], folders: Sequence[ModelFolder]) -> list[str]:
    """Return files that belong to no model and are not served."""
    used = {source for folder in folders for source in (*folder.files.values(), folder.config)}
    return sorted(set(paths) - used)


def _in_version(path: str) -> bool:
    first, slash, _ = path.partition("/")
    return bool(slash) and _VERSION.fullmatch(first) is not None


def _roots_with_config(paths: Sequence[str]) -> set[str]:
    """Return the outermost directories that contain a configuration."""
    roots = {
        path.removesuffix(CONFIG_FILE) for path in paths if PurePosixPath(path).name == CONFIG_FILE
    }
    return {
        root
        for root in roots
        if not any(root != other and root.startswith(other) for other in roots)
    }


def _roots_without_config(paths: Sequence[str], known: set[str]) -> set[str]:
    """Return the directories with the versions of a model, beside the known ones if there are any."""
    parents = {_parent(root) for root in known}
    roots = set()
    for path in paths:
        parts = path.split("/")
        for index, part in enumerate(parts[:-1]):
            if _VERSION.fullmatch(part) and parts[index + 1] in _MODEL_FILES:
                root = "".join(f"{name}/" for name in parts[:index])
                is_new = not any(root.startswith(other) for other in known)
                if is_new and (not known or _parent(root) in parents):
                    roots.add(root)
                break
    return roots or (set() if known else _root_of_code(paths))


def _root_of_code(paths: Sequence[str]) -> set[str]:
    """Return the folder of a model.py without a configuration, unless it is the code of a Hugging Face folder."""
    roots = {
        path.removesuffix("model.py") for path in paths if PurePosixPath(path).name == "model.py"
    }
    is_triton = len(roots) == 1 and all(f"{root}config.json" not in paths for root in roots)
    return roots if is_triton else set()


def _parent(root: str) -> str | None:
    """Return the parent folder. None for the top of the artifact, which has no siblings."""
    return str(PurePosixPath(root).parent) if root else None


def _folder(root: str, paths: Sequence[str]) -> ModelFolder:
    inside = {path.removeprefix(root): path for path in paths if path.startswith(root)}
    config = inside.pop(CONFIG_FILE, "")
    files = {path: source for path, source in inside.items() if not path.startswith(_CONFIGS)}
    return ModelFolder(root, config, files)
