"""Complete a spec with values of its version and its cluster before it is checked, so that it pins
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from deployments import rejections
from deployments.manifests.selectors import golden_warm_up, rendering
from deployments.models import ModelVersion
from deployments.registry.domain import external_weights
from deployments.sizing.domain import declared_size
from deployments.sizing.domain.declared_size import DeclaredSize
from deployments.spec.domain import default_scaling, engines
from deployments.spec.domain.serving_spec import Llm, ServingSpec
from fleet.clusters.domain.capabilities import Capabilities
from fleet.clusters.domain.serving_policy import ServingPolicy
from portal.core import definitions
from portal.core.definitions import Rejected


def complete_spec(
    spec: ServingSpec,
    version: ModelVersion,
    serving: ServingPolicy,
    capabilities: Capabilities,
) -> ServingSpec:
    """Complete a spec with the external weights of the version, the cluster's server image (a
    requested image is ignored), an autoscaler that the cluster has and the termination grace of the engine. Raises Invalid for weights
    that are not the version's.
    """
    with rejections.as_invalid():
        full = golden_warm_up.pin_golden(_with_weights(spec, version), version)
    scaled = _autoscaled(full, serving, capabilities, is_in_place=False)
    grace = scaled.termination_grace_seconds or engines.default_grace_seconds(scaled.engine)
    image = rendering.image_for(scaled, serving)
    return scaled.replace(image=image, termination_grace_seconds=grace)


def autoscaled_in_place(
    spec: ServingSpec, serving: ServingPolicy, capabilities: Capabilities
) -> ServingSpec:
    """Return a running spec with other replicas, and an autoscaler that can take over its pods."""
    return _autoscaled(spec, serving, capabilities, is_in_place=True)


def _autoscaled(
    spec: ServingSpec, serving: ServingPolicy, capabilities: Capabilities, *, is_in_place: bool
) -> ServingSpec:
    return default_scaling.resolve(
        spec,
        capabilities,
        prometheus_url=rendering.policy_in_force(serving).prometheus_url,
        is_in_place=is_in_place,
    )


def for_another(spec: ServingSpec, *, then: ModelVersion, now: ModelVersion) -> ServingSpec:
    """Return the spec of the version `now` for `then`, without the values that came from `now`."""
    spec = golden_warm_up.without_pins(spec)
    llm = spec.llm
    stated = _size_of(now)
    if llm is None or not (
        now.source_uri or then.source_uri or stated.is_read or _size_of(then).is_read
    ):
        return spec
    size = llm.parameters_millions
    if size == stated.parameters_millions:
        size = 0
    with definitions.inside("llm"):
        kept = llm.replace(hugging_face_id="", artifact="", parameters_millions=size)
    return spec.replace(llm=kept)


def _with_weights(spec: ServingSpec, version: ModelVersion) -> ServingSpec:
    """Fill in the weights of the version. The spec is unchanged for an uploaded version that is not a language
    model, and for an engine that cannot load the weights: preflight refuses that with an explanation.
    """
    llm = spec.llm
    if llm is None:
        return spec
    if not version.source_uri:
        return _with_uploaded_weights(spec, llm, version)
    reference = external_weights.parse(version.source_uri)
    if spec.engine not in reference.engines:
        return spec
    own = {
        "llm.hugging_face_id": reference.hugging_face_id,
        "llm.artifact": reference.artifact,
    }
    _require_same(
        llm, own, f"The weights of {version.label} are at {reference.uri}: leave this out."
    )
    stated = declared_size.from_metadata(version.metadata)
    with definitions.inside("llm"):
        full = llm.replace(
            hugging_face_id=reference.hugging_face_id,
            artifact=reference.artifact,
            parameters_millions=llm.parameters_millions or stated.parameters_millions,
        )
    return spec.replace(llm=full)


def _with_uploaded_weights(spec: ServingSpec, llm: Llm, version: ModelVersion) -> ServingSpec:
    size = _size_of(version)
    if not size.is_read:
        return spec
    own = {"llm.hugging_face_id": "", "llm.artifact": ""}
    _require_same(llm, own, f"The weights of {version.label} were uploaded: leave this out.")
    with definitions.inside("llm"):
        full = llm.replace(
            parameters_millions=llm.parameters_millions or size.parameters_millions,
        )
    return spec.replace(llm=full)


def _size_of(version: ModelVersion) -> DeclaredSize:
    return declared_size.from_version(version.source_uri, version.metadata, version.signature)


def _require_same(llm: Llm, own: Mapping[str, str], message: str) -> None:
    """Require that weights named in the request are those of the version. `own` are its values by path. Raises
    Rejected.
    """
    requested = {"llm.hugging_face_id": llm.hugging_face_id, "llm.artifact": llm.artifact}
    problems = {name: message for name, value in requested.items() if value and value != own[name]}
    if problems:
        raise Rejected(message, problems)
