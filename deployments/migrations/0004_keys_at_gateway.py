"""How far each gateway has the keys of its callers."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("deployments", "0003_alias_moves"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeysAtGateway",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("changed_at", models.DateTimeField()),
                ("written_generation", models.PositiveIntegerField(default=0)),
                ("written_at", models.DateTimeField(null=True)),
                ("problem", models.TextField(blank=True, default="")),
                ("is_limit", models.BooleanField(default=False)),
                (
                    "deployment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="keys_at_gateway",
                        to="deployments.deployment",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "keys at gateway",
            },
        ),
    ]
