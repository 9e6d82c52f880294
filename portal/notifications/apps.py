from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "portal.notifications"

    def ready(self) -> None:
        from portal.notifications import tasks  # noqa: F401, PLC0415  fills the task registry
