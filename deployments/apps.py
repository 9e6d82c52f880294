from __future__ import annotations

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"

    def ready(self) -> None:
        # After the models are loaded; also fills the task registry in the web process.
        from deployments import tasks  # noqa: F401, PLC0415  models must be loaded
        from deployments.changes.services import drafts  # noqa: PLC0415  as above
        from deployments.lifecycle.services import wakeups  # noqa: PLC0415  as above
        from deployments.pipelines.domain import manifests  # noqa: PLC0415  as above
        from deployments.pipelines.services import usage  # noqa: PLC0415  as above
        from fleet.observation.services import subscribers  # noqa: PLC0415  as above

        subscribers.register(wakeups.on_change)
        subscribers.register(wakeups.on_pipeline_change, label=manifests.PIPELINE_ID_LABEL)
        subscribers.register_reader(wakeups.on_readings)
        drafts.before_retire(usage.require_unused)
