from django.db import migrations, models


class Migration(migrations.Migration):
    # Only wider: what the version before writes fits as before.
    old_pods_go_on = "A longer column takes what pods of the version before write, and they read text of any length."

    dependencies = [("deployments", "0014_batch_jobs")]

    operations = [
        migrations.AlterField(
            model_name="changerequest",
            name="gpu_name",
            field=models.CharField(blank=True, default="", max_length=400),
        ),
    ]
