from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0019_index_of_a_deployments_rows")]
    operations = [
        migrations.AddField(
            model_name="node", name="neuron_utilisation", field=models.FloatField(null=True)
        ),
        migrations.AddField(
            model_name="node",
            name="neuron_memory_mib",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="node", name="neuron_read_at", field=models.DateTimeField(null=True)
        ),
    ]
