"""The place of a batch job's workers in a queue of Kueue."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0008_replaced_requests")]

    operations = [
        migrations.AddField(
            model_name="batchjob",
            name="queue_state",
            field=models.JSONField(null=True),
        ),
    ]
