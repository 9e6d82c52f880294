"""Lead the accounts of 0.2.0 to the tables of `0001_schema`."""

from importlib import import_module

from django.db import migrations

from portal.core.schema.upgrades import FreshTables

fresh = FreshTables(import_module("portal.accounts.migrations.0001_schema").Migration)


def limit_tokens(apps, schema_editor):
    """A token of 0.2.0 could do everything that its owner may. One that decides lives a day at most since then, so
    that these no longer do.
    """
    apps.get_model("accounts", "ApiToken").objects.update(scopes="read upload request")


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [("accounts", "0001_initial")]
    operations = [
        fresh.create(
            "Invitation",
            "PasswordLink",
            "BrowserSession",
            "Authenticator",
            "Passkey",
            "RecoveryCode",
            "ScimToken",
            "ProvisionedPerson",
            "ProvisionedGroup",
            "Identity",
        ),
        *fresh.add_fields("User", "service_team"),
        *fresh.add_constraints("User", "service_account_is_no_admin"),
        *fresh.add_fields("Team", "is_budget_binding"),
        *fresh.add_fields("Membership", "provider"),
        *fresh.add_fields("ApiToken", "scopes", "team", "made_by", "requests_per_minute"),
        migrations.AlterModelOptions("ApiToken", {"ordering": ["-created_at", "-id"]}),
        migrations.RunPython(limit_tokens, migrations.RunPython.noop),
    ]
