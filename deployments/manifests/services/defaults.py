"""What a spec gets from its version and its cluster before it is checked, so that it pins them."""

from __future__ import annotations

from dataclasses import replace

from deployments.domain import references, stated_models
from deployments.domain.problems import Rejected
from deployments.domain.references import Reference
from deployments.domain.specs import Llm, ServingSpec
from deployments.models import ModelVersion
from deployments.selectors import plans
from fleet.domain.serving_policies import ServingPolicy
from portal.core.errors import Invalid


def completed(spec: ServingSpec, version: ModelVersion, serving: ServingPolicy) -> ServingSpec:
    """With the weights of a version by reference, and the cluster's server image; what a person
    wrote there as image is not taken. Raises Invalid for weights that are not the version's.
    """
    try:
        full = _with_weights(spec, version)
    except Rejected as error:
        raise Invalid(error.message, fields=error.fields) from error
    return replace(full, image=plans.image_for(full, serving))


def for_another(spec: ServingSpec, *, then: ModelVersion, now: ModelVersion) -> ServingSpec:
    """The spec of the version `now` for `then`: what it got from the one is not kept for the other."""
    llm = spec.llm
    if llm is None or not (now.source_uri or then.source_uri):
        return spec
    size = llm.parameters_millions
    if size == stated_models.of_version(now.source_uri, now.metadata).parameters_millions:
        size = 0
    kept = replace(llm, hugging_face_id="", artifact="", parameters_millions=size)
    return replace(spec, llm=kept)


def _with_weights(spec: ServingSpec, version: ModelVersion) -> ServingSpec:
    """As it is for an uploaded version, and for an engine that loads no such weights: preflight
    refuses that in words.
    """
    llm = spec.llm
    if llm is None or not version.source_uri:
        return spec
    reference = references.parse(version.source_uri)
    if spec.engine not in reference.engines:
        return spec
    _require_same(llm, reference, version.label)
    stated = stated_models.of_metadata(version.metadata)
    full = replace(
        llm,
        hugging_face_id=reference.hugging_face_id,
        artifact=reference.artifact,
        parameters_millions=llm.parameters_millions or stated.parameters_millions,
    )
    return replace(spec, llm=full)


def _require_same(llm: Llm, reference: Reference, label: str) -> None:
    told = {
        "llm.hugging_face_id": (llm.hugging_face_id, reference.hugging_face_id),
        "llm.artifact": (llm.artifact, reference.artifact),
    }
    words = f"The weights of {label} lie at {reference.uri}: leave this out."
    wrong = {name: words for name, (asked, own) in told.items() if asked and asked != own}
    if wrong:
        raise Rejected(words, wrong)
