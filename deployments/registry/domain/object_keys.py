"""Keys of objects in the bucket. They contain nothing chosen by a client except validated names."""

from __future__ import annotations

from typing import Final

# The prefix of everything that serving reads.
REPOSITORIES: Final = "repositories/"
_UNPACKED: Final = "unpacked"
# uploads, team, model and token.
_ROOT_SEGMENTS: Final = 4
CONFIG_FILE: Final = "config.pbtxt"
# The name prefix of files generated from a revision's settings; a digest follows.
SETTINGS_PREFIX: Final = "slipway-"
_WARM_UP: Final = "warmup"


def upload_prefix(*, team: str, model: str, token: str) -> str:
    """Return the prefix of an upload. `token` is unique per upload, so no two uploads share a key. Ends with
    "/".
    """
    return f"uploads/{team}/{model}/{token}/"


def unpacked_prefix(upload_prefix: str) -> str:
    """Return the prefix of the files of an archive that lies under `upload_prefix`. Ends with "/"."""
    return f"{upload_prefix}{_UNPACKED}/"


def is_unpacked(upload_prefix: str) -> bool:
    return upload_prefix.split("/")[_ROOT_SEGMENTS:][:1] == [_UNPACKED]


def upload_root(upload_prefix: str) -> str:
    """Return the prefix of everything of an upload, its archive included. Ends with "/"."""
    return "/".join(upload_prefix.split("/")[:_ROOT_SEGMENTS]) + "/"


def repository_prefix(
    *, team: str, model: str, number: int, sha256: str, layout_sha256: str
) -> str:
    """Return the repository root for these files with this layout and configuration. Ends with "/".

    Verifying a version again with another configuration creates another prefix.
    """
    root = number_prefix(team=team, model=model, number=number)
    return f"{root}{sha256[:12]}-{layout_sha256[:12]}/"


def team_prefix(team: str) -> str:
    """Return the prefix that the pods of a team may read. Ends with "/": vision must not match vision-lab."""
    return f"{REPOSITORIES}{team}/"


def number_prefix(*, team: str, model: str, number: int) -> str:
    """Return the prefix of all serving repositories of a version."""
    return f"{team_prefix(team)}{model}/{number}/"


def config_key(prefix: str, model: str) -> str:
    return f"{prefix}{model}/{CONFIG_FILE}"


def model_directory(prefix: str, model: str) -> str:
    """Return Triton's directory of the model under the prefix."""
    return f"{prefix}{model}/"


def model_file_key(prefix: str, model: str, file: str) -> str:
    """Return the key of a model's file. `file` is the name that Triton's backend gives it."""
    return f"{prefix}{model}/1/{file}"


def settings_key(prefix: str, model: str, name: str) -> str:
    """Return the key of a configuration that Triton selects with --model-config-name."""
    return f"{prefix}{model}/configs/{name}.pbtxt"


def warm_up_key(prefix: str, model: str, file: str) -> str:
    """Return the key of raw data that Triton's warm-up reads."""
    return f"{prefix}{model}/{_WARM_UP}/{file}"


def is_settings_key(prefix: str, model: str, key: str) -> bool:
    """Whether `key` is generated from a revision's settings: a configuration, or data of its warm-up."""
    heads = {"configs": ".pbtxt", _WARM_UP: ""}
    for folder, ending in heads.items():
        head = f"{prefix}{model}/{folder}/{SETTINGS_PREFIX}"
        if key.startswith(head) and key.endswith(ending) and "/" not in key[len(head) :]:
            return True
    return False
