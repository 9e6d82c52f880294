import gc

from django.apps import AppConfig

# New objects that start a collection. By default 700 do; collecting then takes 4 % of the processor time of a test, and
# 10 % of that of a start: models and tasks, which are imported after this, all stay.
gc.set_threshold(50_000)


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        # Registers the system checks, and makes ours the current Celery application.
        from portal import celery, checks  # noqa: F401, PLC0415  needed for their effect
        from portal.core import redaction  # noqa: PLC0415  beside the others

        redaction.install()
