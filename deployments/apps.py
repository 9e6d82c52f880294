from django.apps import AppConfig


class DeploymentsConfig(AppConfig):
    name = "deployments"

    def ready(self) -> None:
        from deployments import tasks  # noqa: F401, PLC0415  fills the task registry in the web process
