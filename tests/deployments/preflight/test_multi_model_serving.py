"""AdditionalModel models from request to approval: each is checked, bound to and kept as the own one is."""

from __future__ import annotations

import pytest

from deployments.changes.selectors import evidence
from deployments.changes.services import decisions, requests
from deployments.manifests.selectors import rendering
from deployments.models import ChangeRequest, ModelVersion
from deployments.preflight.domain.checks import Check, Preflight
from deployments.preflight.services import preflight
from deployments.registry.selectors import versions as registry_versions
from deployments.registry.services import declarations, versions
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from deployments.states import ChangeState, VersionState
from fleet.models import Workload
from portal.core.errors import Conflict, Invalid
from tests.deployments.refusals import refused
from tests.deployments.second_model import make_classifier
from tests.deployments.world import World

_ADDITIONAL = (AdditionalModel(model="classifier", version=1),)


@pytest.fixture
def addable(world: World) -> ModelVersion:
    return make_classifier(world)


def _check(result: Preflight, name: str) -> Check:
    return next(check for check in result.checks if check.name == name)


def test_an_additional_version_is_checked_and_its_bytes_are_bound_by_the_approval(
    world: World, addable: ModelVersion
) -> None:
    draft = world.draft(additional_models=_ADDITIONAL)
    result = preflight.check(actor=world.member, draft=draft)
    alone = preflight.check(actor=world.member, draft=world.draft())
    change = requests.request_deploy(actor=world.member, draft=draft)
    ModelVersion.objects.filter(pk=addable.pk).update(sha256="d" * 64)
    change = ChangeRequest.objects.get(pk=change.pk)

    message = "Ready in the serving repository: classifier:1."
    assert _check(result, "Multi-model serving").detail == message
    assert all(check.name != "Multi-model serving" for check in alone.checks)
    assert evidence.digest(change) != change.evidence_hash


@pytest.mark.parametrize(
    ("additional", "field"),
    [
        (AdditionalModel(model="classifier", version=2), "additional_models.0.version"),
        (AdditionalModel(model="stranger", version=1), "additional_models.0.version"),
        (AdditionalModel(model="detector", version=2), "additional_models.0.model"),
    ],
)
def test_what_the_team_has_not_or_serves_already_is_refused(
    world: World, addable: ModelVersion, additional: AdditionalModel, field: str
) -> None:
    with refused(world, Invalid) as raised:
        requests.request_deploy(
            actor=world.member, draft=world.draft(additional_models=(additional,))
        )

    assert list(raised[0].fields) == [field]


def test_an_additional_version_that_is_not_ready_or_not_laid_out_is_refused(
    world: World, addable: ModelVersion
) -> None:
    draft = world.draft(additional_models=_ADDITIONAL)
    world.store.sizes.pop(f"{addable.repository_prefix}classifier/1/model.onnx")
    with refused(world, Invalid) as missing:
        requests.request_deploy(actor=world.member, draft=draft)
    world.store.lay_out(addable)
    ModelVersion.objects.filter(pk=addable.pk).update(state=VersionState.ARCHIVED)
    with refused(world, Invalid) as archived:
        requests.request_deploy(actor=world.member, draft=draft)

    assert "classifier/1/model.onnx" in missing[0].fields["additional_models"]
    assert "classifier:1 is archived." in archived[0].fields["additional_models"]


def test_a_plan_among_the_additional_versions_needs_the_gpu_that_it_was_built_for(
    world: World, addable: ModelVersion
) -> None:
    """The instance type of the draft has an A10G, of compute capability 8.6."""
    draft = world.draft(additional_models=_ADDITIONAL)
    ModelVersion.objects.filter(pk=addable.pk).update(signature={"compute_capability": "7.5"})
    with refused(world, Invalid) as raised:
        requests.request_deploy(actor=world.member, draft=draft)
    assert "classifier:1 was built for compute capability 7.5" in raised[0].fields["instance_type"]

    ModelVersion.objects.filter(pk=addable.pk).update(signature={"compute_capability": "8.6"})
    requests.request_deploy(actor=world.member, draft=draft)


def test_an_approval_is_refused_when_an_additional_version_is_no_longer_ready(
    world: World, addable: ModelVersion
) -> None:
    change = requests.request_deploy(
        actor=world.member, draft=world.draft(additional_models=_ADDITIONAL)
    )
    ModelVersion.objects.filter(pk=addable.pk).update(state=VersionState.QUARANTINED)

    with pytest.raises(Invalid, match=r"classifier:1 is quarantined\."):
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    change.refresh_from_db()
    assert change.state == ChangeState.SUBMITTED
    assert not change.approvals.exists()


def test_a_version_that_is_additional_somewhere_counts_as_serving_and_is_not_archived(
    world: World, addable: ModelVersion
) -> None:
    deployment = world.serving(additional_models=_ADDITIONAL)

    assert registry_versions.deployments_serving([addable.pk]) == {addable.pk: [deployment]}
    with refused(world, Conflict, code="still_serving"):
        versions.archive(actor=world.member, version_id=addable.pk)


def test_a_canary_keeps_additional_models_and_reports_a_removed_one(
    world: World, addable: ModelVersion
) -> None:
    deployment = world.serving(additional_models=_ADDITIONAL)
    alone = ServingSpec(engine="kserve-triton", instance_type="g5.xlarge")

    left_out = preflight.check_revision(
        actor=world.member, deployment=deployment, version=world.version2, spec=alone, number=2
    )
    canary = requests.request_canary(
        actor=world.member,
        deployment_id=deployment.pk,
        version_id=world.version2.pk,
        steps=[{"weight": 10, "soak_seconds": 0, "min_requests": 0}],
    )

    check = _check(left_out, "Multi-model clients")
    assert (check.ok, check.is_refusal) == (False, False)
    assert check.detail == "classifier:1 will no longer be served at this address."
    assert canary.revision is not None
    assert rendering.spec_of(canary.revision).additional_models == _ADDITIONAL


def test_all_models_of_one_process_are_metered_together(
    world: World, addable: ModelVersion
) -> None:
    alone, both = world.serving(name="alone"), world.serving(additional_models=_ADDITIONAL)

    rows = {row.name: row for row in Workload.objects.all()}
    apart, together = rows[f"{alone.name}-r1"], rows[f"{both.name}-r1"]

    assert (apart.triton_models, apart.labels["model"]) == (["detector"], "detector")
    assert together.triton_models == ["detector", "classifier"]
    assert together.labels["model"] == "detector + classifier"


@pytest.mark.parametrize("is_additional", [False, True])
def test_a_version_of_any_revision_cannot_be_declared_anew(
    world: World, addable: ModelVersion, *, is_additional: bool
) -> None:
    """What was approved keeps its configuration, also while the deployment is stopped."""
    requests.request_deploy(actor=world.member, draft=world.draft(additional_models=_ADDITIONAL))
    version = addable if is_additional else world.version1
    before = ModelVersion.objects.filter(pk=version.pk).values().get()

    with pytest.raises(Conflict) as refusal:
        declarations.declare(
            actor=world.member,
            version_id=version.pk,
            supports_batching=True,
            max_batch_size=8,
            largest_inputs={},
        )

    assert refusal.value.code == "version_in_use"
    assert ModelVersion.objects.filter(pk=version.pk).values().get() == before
