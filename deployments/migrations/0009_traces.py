from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0008_alerts")]

    operations = [
        migrations.AddField(
            model_name="changerequest",
            name="trace",
            field=models.CharField(blank=True, default="", db_default="", max_length=55),
        ),
        migrations.AddField(
            model_name="deployment",
            name="trace",
            field=models.CharField(blank=True, default="", db_default="", max_length=55),
        ),
    ]
