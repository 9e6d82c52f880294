"""Choose the files of weights that a server loads, as vLLM does; the others are not served.

The index says which files count (vllm/model_executor/model_loader/weight_utils.py,
`filter_duplicate_safetensors_files`). Without one it is `model*.safetensors`: other files hold the same weights for other
programs, such as `consolidated.safetensors` of Mistral's folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.not_servable import NotServable, quote

ENDING: Final = ".safetensors"
INDEX: Final = "model.safetensors.index.json"
_CONSOLIDATED: Final = "consolidated"
_CONSOLIDATED_INDEX: Final = "consolidated.safetensors.index.json"
_WHOLE: Final = "model.safetensors"
_SHARD: Final = re.compile(r"(.+)-(\d{5,6})-of-(\d{5,6})\.safetensors")
_MAX_INDEX_BYTES: Final = 64 * 2**20
_MAX_FILES: Final = 1000


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """The files of weights in a folder. `files` are names in the folder. `placed` has the file of each tensor
    that an index names.
    """

    files: tuple[str, ...]
    placed: Mapping[str, str] = field(default_factory=dict)
    index: str = ""


def choose(artifact: Artifact, paths: Mapping[str, str]) -> WeightFiles:
    """Choose the files of weights. `paths` are those of the folder's files by name. Raises NotServable."""
    names = sorted(name for name in paths if name.endswith(ENDING) and "/" not in name)
    index = INDEX
    if INDEX not in paths and all(name.startswith(_CONSOLIDATED) for name in names):
        index = _CONSOLIDATED_INDEX
    if index in paths:
        placed = _weight_map(artifact, paths[index], index)
        chosen = sorted(set(placed.values()))
        missing = [file for file in chosen if file not in names]
        if missing:
            raise NotServable(
                f"{index} names {quote(missing[0])}, which is not in the folder. Upload all files of "
                "weights, or remove an index that belongs to other files."
            )
        weights = WeightFiles(tuple(chosen), placed, index)
    else:
        weights = WeightFiles(tuple(_without_index(names)))
    if len(weights.files) > _MAX_FILES:
        raise NotServable(f"{len(weights.files):,} files of weights are more than {_MAX_FILES:,}.")
    return weights


def _without_index(names: list[str]) -> list[str]:
    if _WHOLE in names:
        names = [name for name in names if not _SHARD.fullmatch(name)]
    own = [name for name in names if name.startswith("model")]
    own = own or [name for name in names if not name.startswith(_CONSOLIDATED)] or names
    _require_all_shards(own)
    return own


def _require_all_shards(names: Iterable[str]) -> None:
    """Require all shards. Nothing but their names says how many there are. Raises NotServable."""
    shards = [match for name in names if (match := _SHARD.fullmatch(name))]
    known = {match[0] for match in shards}
    for match in shards:
        start, digits, count = match[1], len(match[2]), int(match[3])
        for number in range(1, min(count, _MAX_FILES) + 1):
            name = f"{start}-{number:0{digits}}-of-{match[3]}{ENDING}"
            if name not in known:
                raise NotServable(
                    f"{quote(match[0])} is one of {count:,} files of weights, and {quote(name)} is not in "
                    "the folder. Upload all of them."
                )
        return


def _weight_map(artifact: Artifact, path: str, index: str) -> dict[str, str]:
    size = artifact.sizes[path]
    if size > _MAX_INDEX_BYTES:
        raise NotServable(f"{index} has {size:,} bytes; the limit is {_MAX_INDEX_BYTES:,}.")
    try:
        data = json.loads(artifact.read(path, 0, size))
    except (ValueError, RecursionError):
        data = None
    match data:
        case {"weight_map": dict(stated)} if stated and all(
            isinstance(file, str) for file in stated.values()
        ):
            return stated
    raise NotServable(
        f"{index} has no readable weight_map. Save the model again with save_pretrained."
    )
