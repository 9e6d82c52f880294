from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0015_pod_instance_types")]
    operations = [
        migrations.AddField(
            model_name="workload", name="ends_at", field=models.DateTimeField(null=True)
        ),
        migrations.AddField(
            model_name="node", name="xids", field=models.JSONField(null=True)
        ),
        migrations.AddField(
            model_name="node", name="xids_read_at", field=models.DateTimeField(null=True)
        ),
    ]
