import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0017_neuron")]
    operations = [
        migrations.AddField(
            model_name="cluster", name="devices_read_at", field=models.DateTimeField(null=True)
        ),
        migrations.AddField(
            model_name="node",
            name="claimable",
            field=models.JSONField(
                db_default=models.Value({}, output_field=models.JSONField()), default=dict
            ),
        ),
        migrations.AddField(
            model_name="pod",
            name="plugin_units",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="pod",
            name="devices",
            field=models.JSONField(
                db_default=models.Value([], output_field=models.JSONField()), default=list
            ),
        ),
        migrations.CreateModel(
            name="DeviceSlice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("resource_version", models.BigIntegerField(default=0)),
                ("node_name", models.CharField(max_length=253)),
                ("pool", models.CharField(max_length=253)),
                ("generation", models.BigIntegerField(default=0)),
                ("counters", models.JSONField(default=dict)),
                ("devices", models.JSONField(default=list)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="device_slices",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "uid"), name="one_row_per_device_slice"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="DeviceClaim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("resource_version", models.BigIntegerField(default=0)),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("pod_uid", models.CharField(blank=True, default="", max_length=64)),
                ("pod_name", models.CharField(blank=True, default="", max_length=253)),
                ("held_since", models.DateTimeField(null=True)),
                ("allocated", models.JSONField(default=list)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="device_claims",
                        to="fleet.cluster",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "pod_uid"], name="claims_of_a_pod")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "uid"), name="one_row_per_device_claim"
                    )
                ],
            },
        ),
    ]
