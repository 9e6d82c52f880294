"""CustomResourceDefinitions of a folder. KServe's take a second to parse from YAML, so what was parsed is
kept as JSON in the user's cache, under a name that follows from the text.
"""

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from slipway_localcluster.errors import JsonObject


def read_definition(path: Path) -> JsonObject:
    """Raises OSError and YAMLError."""
    text = path.read_bytes()
    kept = _cache_folder() / f"{hashlib.sha256(text).hexdigest()}.json"
    with suppress(OSError, ValueError):
        definition: JsonObject = json.loads(kept.read_bytes())
        return definition
    definition = yaml.load(text, Loader=yaml.CSafeLoader)
    # A cache that cannot be written costs time only.
    with suppress(OSError, TypeError):
        _keep(kept, definition)
    return definition


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slipway" / "crds"


def _keep(kept: Path, definition: Any) -> None:
    """Keep a definition as a whole or not at all: another process may read it at any moment."""
    text = json.dumps(definition)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, suffix=".new", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            Path(file.name).replace(kept)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise
