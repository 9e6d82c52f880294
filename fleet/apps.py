from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "fleet"

    def ready(self) -> None:
        from fleet import tasks  # noqa: F401, PLC0415  fills the task registry in the web process
