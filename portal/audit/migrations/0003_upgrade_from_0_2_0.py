"""Lead the audit trail of 0.2.0 to the tables of `0001_schema`. Sealing begins with its oldest event."""

from importlib import import_module

from django.db import migrations

from portal.core.schema.upgrades import FreshTables

fresh = FreshTables(import_module("portal.audit.migrations.0001_schema").Migration)


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [("audit", "0001_initial")]
    operations = [
        fresh.create("ChainLink", "ChainAnchor", "AnchorCopy", "ChainCheck", "StreamPosition")
    ]
