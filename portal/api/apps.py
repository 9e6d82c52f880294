from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"
    label = "portal_api"

    def ready(self) -> None:
        # Registers the description of our authentication with drf-spectacular.
        from portal.api import schema  # noqa: F401, PLC0415  needed for its effect
