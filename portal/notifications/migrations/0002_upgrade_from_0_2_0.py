"""Lead the notifications of 0.2.0 to the tables of `0001_schema`."""

from importlib import import_module

from django.db import migrations

from portal.core.schema.upgrades import FreshTables

fresh = FreshTables(import_module("portal.notifications.migrations.0001_schema").Migration)
EVENTS = {"approval.wanted": "approval.requested"}


def rename_events(apps, schema_editor):
    notices = apps.get_model("notifications", "Notice").objects
    for old, new in EVENTS.items():
        notices.filter(event=old).update(event=new)
    for channel in apps.get_model("notifications", "Channel").objects.all():
        channel.events = [EVENTS.get(code, code) for code in channel.events]
        channel.save(update_fields=["events"])


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [
        ("notifications", "0001_initial"),
        ("accounts", "0002_upgrade_from_0_2_0"),
    ]
    operations = [
        migrations.RenameField("Channel", "last_words", "last_outcome"),
        migrations.RenameField("Delivery", "words", "outcome"),
        migrations.RenameField("Notice", "words", "message"),
        *fresh.alter_fields("Notice", "team"),
        migrations.RunPython(rename_events, migrations.RunPython.noop),
    ]
