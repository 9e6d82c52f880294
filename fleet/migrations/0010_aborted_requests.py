from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0009_ledger_months")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="request_aborted",
            field=models.BigIntegerField(default=0, db_default=0),
        )
        for name in ("metricsample", "workloadminute", "workloadhour")
    ]
