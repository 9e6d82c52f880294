"""Settings against the config.pbtxt that came with a model."""

from __future__ import annotations

from deployments.registry.domain.signatures import ENSEMBLE, FURTHER_MODELS, Signature
from deployments.registry.domain.triton_config import text
from deployments.registry.domain.triton_config.rendering import Tuning, build, is_default
from deployments.registry.domain.triton_config.text import ConfigProblem
from deployments.spec.domain.serving_spec import AdditionalModel


def problem_with(signature: Signature, spec: Tuning) -> ConfigProblem | None:
    """Return the problem of settings that cannot change the config.pbtxt that came with the model. None if
    there is none.
    """
    further = signature.facts.get(FURTHER_MODELS)
    if further and (isinstance(spec, AdditionalModel) or getattr(spec, "additional_models", ())):
        return ConfigProblem(
            f"The version brings further models ({', '.join(further)}), which multi-model serving would "
            "not load.",
            "Deploy it alone.",
        )
    if signature.backend.name == ENSEMBLE and not is_default(signature, spec):
        return ConfigProblem(
            "An ensemble has no batching, instances or warm-up of its own.",
            "Leave these settings at their defaults, and state them in the config.pbtxt of its models.",
        )
    own = text.parse(signature.backend.config)
    adapted = build(model="", signature=signature, spec=spec)
    if own.HasField("sequence_batching") and not adapted.HasField("sequence_batching"):
        return ConfigProblem(
            "The model's config.pbtxt batches sequences.", "Leave dynamic batching at its defaults."
        )
    return None
