from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

_SUMS = ("workloadhour", "workloadday", "teamusageday")


class Migration(migrations.Migration):
    dependencies = [("fleet", "0012_office_hours")]

    operations = [
        *(
            migrations.AddField(
                model_name=name, name="energy_mj", field=models.BigIntegerField(null=True)
            )
            for name in _SUMS
        ),
        *(
            migrations.AddField(
                model_name=name,
                name="energy_ms",
                field=models.BigIntegerField(default=0, db_default=0),
            )
            for name in _SUMS
        ),
        migrations.CreateModel(
            name="EnergyReading",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("read_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.cluster",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="energyreading",
            constraint=models.UniqueConstraint(
                fields=("cluster", "hour"), name="energy_read_once"
            ),
        ),
    ]
