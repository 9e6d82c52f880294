"""How the model servers of a cluster were last read through its Prometheus."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0023_device_taints")]

    operations = [
        migrations.CreateModel(
            name="ScrapeReading",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=models.deletion.CASCADE,
                        primary_key=True,
                        related_name="scrape_reading",
                        serialize=False,
                        to="fleet.cluster",
                    ),
                ),
                ("next_at", models.DateTimeField()),
                ("read_at", models.DateTimeField(null=True)),
                ("pods", models.PositiveIntegerField(default=0)),
                ("direct_pods", models.JSONField(default=list)),
                ("unread", models.PositiveIntegerField(default=0)),
                ("problem", models.TextField(blank=True, default="")),
            ],
        ),
    ]
