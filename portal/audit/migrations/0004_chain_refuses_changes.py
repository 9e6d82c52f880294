"""Refuse changes of the chain, as those of events are refused since 0.2.0."""

from importlib import import_module

from django.db import migrations

append_only = import_module("portal.audit.migrations.0002_append_only")
OF_0_2_0 = "audit_auditevent"


def _run(statements):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor != "postgresql":
            return
        for table in append_only.FINAL:
            if table != OF_0_2_0:
                schema_editor.execute(statements(table), params=None)

    return run


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [
        ("audit", "0002_events_refuse_changes"),
        ("audit", "0003_upgrade_from_0_2_0"),
    ]
    operations = [
        migrations.RunPython(
            _run(append_only.create_triggers), _run(append_only.drop_triggers)
        )
    ]
