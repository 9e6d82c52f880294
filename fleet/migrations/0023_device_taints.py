"""Taints of claimed devices: of slices, of rules of the cluster, and what they take from each node."""

from django.db import migrations, models


def _rows():
    return models.JSONField(
        default=list, db_default=models.Value([], output_field=models.JSONField())
    )


class Migration(migrations.Migration):
    dependencies = [("fleet", "0022_sums_of_hours")]

    operations = [
        migrations.AddField("cluster", "device_taint_rules", _rows()),
        migrations.AddField("deviceslice", "taints", _rows()),
        migrations.AddField("node", "tainted_gpus", _rows()),
    ]
