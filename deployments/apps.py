from __future__ import annotations

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"

    def ready(self) -> None:
        # After the models are loaded; also fills the task registry in the web process.
        from deployments import tasks  # noqa: F401, PLC0415  models must be loaded
        from deployments.changes.selectors import subjects  # noqa: PLC0415  as above
        from deployments.changes.services import drafts  # noqa: PLC0415  as above
        from deployments.changes.services.deployment_subject import (  # noqa: PLC0415  as above
            DeploymentSubject,
        )
        from deployments.lifecycle.services import wakeups  # noqa: PLC0415  as above
        from deployments.load_tests.services.jobs import Jobs  # noqa: PLC0415  as above
        from deployments.manifests.domain import metadata  # noqa: PLC0415  as above
        from deployments.models import Deployment, Pipeline  # noqa: PLC0415  as above
        from deployments.pipelines.services import usage  # noqa: PLC0415  as above
        from deployments.pipelines.services.pipeline_subject import (  # noqa: PLC0415  as above
            PipelineSubject,
        )
        from deployments.registry.services.examination import (  # noqa: PLC0415  as above
            cluster_load_test,
        )
        from deployments.rollouts.selectors import open_workloads  # noqa: PLC0415  as above
        from fleet.observation.services import subscribers  # noqa: PLC0415  as above
        from fleet.telemetry.services import prompt_readings  # noqa: PLC0415  as above

        subjects.register(Deployment, DeploymentSubject())
        subjects.register(Pipeline, PipelineSubject())
        subscribers.register(wakeups.on_change)
        subscribers.register(wakeups.on_pipeline_change, label=metadata.PIPELINE_ID_LABEL)
        subscribers.register_deletions(wakeups.on_deletion)
        subscribers.register_reader(wakeups.on_readings)
        _register_proof()
        prompt_readings.register(open_workloads.list_open_workloads)
        drafts.before_retire(usage.require_unused)
        drafts.before_close(usage.require_callable)
        cluster_load_test.register(Jobs())
        _register_costs()
        _register_capacity()


def _register_proof() -> None:
    from deployments.serving.selectors import recorded_objects  # noqa: PLC0415  models must be loaded
    from fleet.kube.services import ownership  # noqa: PLC0415  as above

    ownership.register_proof(recorded_objects.prove)


def _register_costs() -> None:
    from deployments.pages.selectors import cost_marks, named_pages  # noqa: PLC0415  models must be loaded
    from fleet.costs.domain.results import GroupBy  # noqa: PLC0415  as above
    from fleet.costs.services import marks  # noqa: PLC0415  as above
    from fleet.costs.services import named_pages as named_cost_pages  # noqa: PLC0415  as above

    marks.register(cost_marks.list_marks)
    for group_by in (GroupBy.DEPLOYMENT, GroupBy.REVISION):
        named_cost_pages.register(group_by, named_pages.existing_deployments)
    named_cost_pages.register(GroupBy.MODEL, named_pages.existing_models)


def _register_capacity() -> None:
    from deployments.pages.selectors import waiting  # noqa: PLC0415  models must be loaded
    from fleet.capacity.services import wait_sources  # noqa: PLC0415  as above

    wait_sources.register(waiting.DeploymentWaits())
