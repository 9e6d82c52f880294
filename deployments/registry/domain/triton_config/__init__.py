"""The config.pbtxt of a model: written from its signature and settings, and read back into settings."""

from deployments.registry.domain.triton_config.checks import (
    problem_with,
    problems_with,
    warnings_of,
)
from deployments.registry.domain.triton_config.dims import serving_dims
from deployments.registry.domain.triton_config.reading import ConfigReading, read, signature_of
from deployments.registry.domain.triton_config.rendering import (
    Tuning,
    build,
    is_default,
    render,
    render_vllm,
)
from deployments.registry.domain.triton_config.text import ConfigProblem, InvalidText, parse, write

__all__ = [
    "ConfigProblem",
    "ConfigReading",
    "InvalidText",
    "Tuning",
    "build",
    "is_default",
    "parse",
    "problem_with",
    "problems_with",
    "read",
    "render",
    "render_vllm",
    "serving_dims",
    "signature_of",
    "warnings_of",
    "write",
]
