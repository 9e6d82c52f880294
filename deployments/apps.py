from __future__ import annotations

from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"

    def ready(self) -> None:
        # After the models are loaded; also fills the task registry in the web process.
        from deployments import tasks  # noqa: F401, PLC0415  models must be loaded
        from deployments.domain.manifests import graph  # noqa: PLC0415  as above
        from deployments.services import hearing  # noqa: PLC0415  as above
        from fleet.services import observers  # noqa: PLC0415  as above

        observers.register(hearing.on_change)
        observers.register(hearing.on_pipeline_change, label=graph.PIPELINE_ID_LABEL)
        observers.register_reader(hearing.on_readings)
