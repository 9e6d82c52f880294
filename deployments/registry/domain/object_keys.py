"""Where things lie in the bucket. Keys hold nothing that a client chose but legal names."""

from __future__ import annotations

from typing import Final

# All that serving reads lies under it.
REPOSITORIES: Final = "repositories/"
MODEL_FILE: Final = "1/model.onnx"
CONFIG_FILE: Final = "config.pbtxt"
# Configurations made from a revision's settings begin with it; a digest follows.
SETTINGS_PREFIX: Final = "slipway-"


def upload_key(*, team: str, model: str, token: str) -> str:
    """A fresh token per upload: no two uploads ever share a key."""
    return f"uploads/{team}/{model}/{token}/artifact"


def repository_prefix(
    *, team: str, model: str, number: int, sha256: str, config_sha256: str
) -> str:
    """Triton's repository root for exactly these bytes with this configuration: one verified again with
    another leaves the former alone. Ends with "/", because prefixes match textually.
    """
    root = number_prefix(team=team, model=model, number=number)
    return f"{root}{sha256[:12]}-{config_sha256[:12]}/"


def team_prefix(team: str) -> str:
    """Everything that the pods of a team may read. Ends with "/", so that vision is not vision-lab."""
    return f"{REPOSITORIES}{team}/"


def number_prefix(*, team: str, model: str, number: int) -> str:
    """Everything that serving could read of one version."""
    return f"{team_prefix(team)}{model}/{number}/"


def config_key(prefix: str, model: str) -> str:
    return f"{prefix}{model}/{CONFIG_FILE}"


def model_directory(prefix: str, model: str) -> str:
    """Triton's directory of the model alone, without what else may lie under the prefix."""
    return f"{prefix}{model}/"


def model_file_key(prefix: str, model: str) -> str:
    return f"{prefix}{model}/{MODEL_FILE}"


def settings_key(prefix: str, model: str, name: str) -> str:
    """Where Triton's --model-config-name looks for the configuration of that name."""
    return f"{prefix}{model}/configs/{name}.pbtxt"


def is_settings_key(prefix: str, model: str, key: str) -> bool:
    """Whether it is a configuration that some revision of the version brought."""
    head = f"{prefix}{model}/configs/{SETTINGS_PREFIX}"
    return key.startswith(head) and key.endswith(".pbtxt") and "/" not in key[len(head) :]
