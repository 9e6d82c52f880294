"""Requests to take a safeguard of a deployment away."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('deployments', '0004_keys_at_gateway'),
    ]

    operations = [
        migrations.CreateModel(
            name='SafeguardRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('safeguard', models.CharField(choices=[('drift', 'hold drift for review'), ('health', 'switch the watch off')], max_length=10)),
                ('approvals', models.JSONField(default=list)),
                ('created_at', models.DateTimeField()),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='safeguard_requests', to='deployments.deployment')),
                ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('deployment', 'safeguard'), name='one_request_for_each_safeguard')],
            },
        ),
    ]
