from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "portal.accounts"

    def ready(self) -> None:
        # Registers its audit actions also in the web process, which shows them.
        from portal.accounts import people  # noqa: F401, PLC0415  imported for what it registers
