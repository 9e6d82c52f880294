"""Settings of a deployment on the config.pbtxt that came with a model."""

from __future__ import annotations

from typing import Any

from deployments.registry.domain.triton_config import text


def adapt(own: str, *, model: str, default: Any, desired: Any) -> Any:
    """Return the uploaded configuration `own` with the fields in which `desired` differs from `default`: a
    setting that was not changed keeps what the uploader wrote. The text was checked on upload.
    """
    config = text.parse(own)
    config.name = model
    for field in default.DESCRIPTOR.fields:
        one, other = type(default)(), type(default)()
        text.partial_copy(default, one, field.name)
        text.partial_copy(desired, other, field.name)
        if one != other:
            text.partial_copy(desired, config, field.name)
    return config
