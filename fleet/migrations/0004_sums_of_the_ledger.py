"""The sums of the ledger: of the rows of 0.2.0 now, and of each later row when it is inserted."""

from importlib import import_module

from django.db import migrations

ledger = import_module("fleet.migrations.0002_ledger_triggers")


def create(apps, schema_editor):
    ledger.create_sums(apps, schema_editor)
    for sums in ledger.SUMS.values():
        for one in sums:
            schema_editor.execute(ledger.sum_up(schema_editor.connection.vendor, *one), params=None)


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [
        ("fleet", "0002_sealed_rows_refuse_changes"),
        ("fleet", "0003_upgrade_from_0_2_0"),
    ]
    operations = [migrations.RunPython(create, ledger.drop_sums)]
