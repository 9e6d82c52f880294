"""What the rules of an environment forbid is refused whatever the kind of request that would bring it."""

from __future__ import annotations

import pytest

from deployments.changes.services import decisions, requests
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.services import environment_rules
from deployments.models import Deployment, Model, ModelVersion, Revision
from deployments.pipelines.services import requests as pipeline_requests
from deployments.spec.domain.serving_spec import AdditionalModel
from deployments.states import ChangeState, Environment, VersionState
from fleet.models import Cluster
from portal.core.errors import Invalid
from tests.deployments import pipelines_world
from tests.deployments.callers.test_keys import keyed
from tests.deployments.refusals import refused
from tests.deployments.world import World

_NO_OPEN = "The rules of production allow no public address."


def protect(
    world: World, rules: EnvironmentRules, *, clusters: tuple[int, ...] = (), to: str = "production"
) -> None:
    environment_rules.change(
        actor=world.admin, environment=to, team=None, rules=rules, cluster_ids=clusters
    )


def earlier_open_revision(world: World, deployment: Deployment) -> Revision:
    """As from before its address had keys."""
    stable = deployment.stable_revision
    assert stable is not None
    spec = {**stable.spec, "network": {**stable.spec["network"], "access": "open"}}
    return Revision.objects.create(
        deployment=deployment,
        number=7,
        version=stable.version,
        spec=spec,
        created_by=world.member,
        created_at=world.clock.at,
    )


def classifier(world: World) -> ModelVersion:
    """A ready version of another model of the team."""
    model = Model.objects.create(
        team=world.team,
        name="classifier",
        created_by=world.member,
        created_at=world.clock.at,
        changed_at=world.clock.at,
    )
    version = ModelVersion.objects.create(
        model=model,
        number=1,
        state=VersionState.READY,
        filename="classifier.onnx",
        declared_size_bytes=10,
        size_bytes=10,
        bucket="slipway-models",
        upload_prefix="uploads/classifier/",
        sha256="c" * 64,
        repository_prefix=f"repositories/vision/classifier/1/{'ab' * 6}/",
        created_by=world.member,
        created_at=world.clock.at,
    )
    world.store.lay_out(version)
    return version


def test_a_roll_back_opens_no_address_where_callers_need_a_key(world: World) -> None:
    deployment = keyed(world)
    earlier_open_revision(world, deployment)
    protect(world, EnvironmentRules(callers_need_key=True))

    with refused(world, Invalid) as raised:
        requests.request_roll_back(
            actor=world.member, deployment_id=deployment.pk, revision_number=7
        )

    assert _NO_OPEN in raised[0].message


def test_a_roll_back_that_opens_is_not_approved_once_the_rules_forbid_it(world: World) -> None:
    deployment = keyed(world)
    earlier_open_revision(world, deployment)
    change = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=7
    )
    protect(world, EnvironmentRules(callers_need_key=True))
    world.work()
    change.refresh_from_db()

    with refused(world, Invalid) as raised:
        decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    assert _NO_OPEN in raised[0].message


def test_a_roll_back_of_what_is_open_already_does_not_wait_for_rules(world: World) -> None:
    deployment = world.serving()
    earlier_open_revision(world, deployment)
    protect(world, EnvironmentRules(callers_need_key=True))

    change = requests.request_roll_back(
        actor=world.member, deployment_id=deployment.pk, revision_number=7
    )

    assert change.state == ChangeState.SUBMITTED


def test_a_pipeline_opens_no_address_where_callers_need_a_key(world: World) -> None:
    pipelines_world.members(world)
    protect(world, EnvironmentRules(callers_need_key=True))

    with refused(world, Invalid) as raised:
        pipelines_world.request_change(world)

    assert raised[0].fields == {
        "environment": f"{_NO_OPEN} Call the deployments with their keys instead: a pipeline takes none."
    }


def test_a_pipeline_is_not_approved_or_started_once_the_rules_forbid_it(world: World) -> None:
    stopped = pipelines_world.serving(world)
    stopped.is_stopped = True
    stopped.save()
    change = pipelines_world.request_change(world, name="other")
    protect(world, EnvironmentRules(callers_need_key=True))
    world.work()

    with refused(world, Invalid) as raised:
        pipelines_world.approve(world.lead, change)
    with refused(world, Invalid) as started:
        pipeline_requests.request_start(actor=world.member, pipeline_id=stopped.pk)

    assert _NO_OPEN in raised[0].message
    assert _NO_OPEN in started[0].message


def test_a_pipeline_that_serves_may_change_whatever_the_rules(world: World) -> None:
    pipeline = pipelines_world.serving(world)
    protect(world, EnvironmentRules(callers_need_key=True))
    spec = {
        "nodes": [
            pipelines_world.node(
                "ensemble", pipelines_world.step("detector"), pipelines_world.step("classifier")
            )
        ]
    }

    change = pipeline_requests.request_change(
        actor=world.member, pipeline_id=pipeline.pk, spec=spec
    )

    assert change.state == ChangeState.SUBMITTED


def test_a_pipeline_is_not_approved_on_a_cluster_that_was_reserved_since(world: World) -> None:
    change = pipelines_world.request_change(world)
    protect(world, EnvironmentRules(), clusters=(world.cluster_id,), to="staging")
    cluster = Cluster.objects.get(pk=world.cluster_id)

    with refused(world, Invalid) as raised:
        pipelines_world.approve(world.lead, change)

    assert f"{cluster.name} is reserved for staging" in raised[0].message


def test_a_further_model_of_the_same_triton_must_have_served_before_too(world: World) -> None:
    further = classifier(world)
    world.serving(environment="staging", name="trial")
    protect(world, EnvironmentRules(promoted_from="staging"))
    both = (AdditionalModel(model="classifier", version=further.number),)

    alone = requests.request_deploy(actor=world.member, draft=world.draft("alone"))
    with refused(world, Invalid) as raised:
        requests.request_deploy(
            actor=world.member, draft=world.draft("live", additional_models=both)
        )

    assert alone.state == ChangeState.SUBMITTED
    assert raised[0].fields["version_id"] == (
        "classifier:1 never served in staging. Deploy it in staging first."
    )


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_further_model_that_served_alone_or_beside_another_may_enter(
    world: World, is_alone: bool
) -> None:
    further = classifier(world)
    both = (AdditionalModel(model="classifier", version=further.number),)
    world.serving(
        environment="staging", name="trial", **({} if is_alone else {"additional_models": both})
    )
    if is_alone:
        detector, world.version1 = world.version1, further
        world.serving(environment="staging", name="other")
        world.version1 = detector
    protect(world, EnvironmentRules(promoted_from="staging"))

    change = requests.request_deploy(
        actor=world.member, draft=world.draft("live", additional_models=both)
    )

    assert change.subject.environment == Environment.PRODUCTION
    assert [row["ok"] for row in change.checks if row["name"] == "Promotion"] == [True]
