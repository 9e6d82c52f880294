"""All tables of the app. A new database begins here, one of 0.2.0 with the migrations that it replaces (ADR 95)."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from portal.core.schema.operations import CreateModels


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('notifications', '0001_initial'),
        ('notifications', '0002_upgrade_from_0_2_0'),
    ]

    dependencies = [
        ('accounts', '0001_schema'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateModels(
            [
                migrations.CreateModel(
                    name='Channel',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='channels', to='accounts.team')),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='channels', to=settings.AUTH_USER_MODEL)),
                        ('name', models.CharField(max_length=60)),
                        ('kind', models.CharField(choices=[('slack', 'Slack'), ('teams', 'Microsoft Teams'), ('email', 'E-mail'), ('webhook', 'Webhook')], max_length=10)),
                        ('sealed_address', models.TextField()),
                        ('hint', models.CharField(max_length=254)),
                        ('events', models.JSONField(default=list)),
                        ('is_on', models.BooleanField(default=True)),
                        ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_at', models.DateTimeField()),
                        ('last_at', models.DateTimeField(null=True)),
                        ('is_last_sent', models.BooleanField(null=True)),
                        ('last_outcome', models.CharField(blank=True, default='', max_length=300)),
                    ],
                    options={
                        'ordering': ['name', 'id'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('team__isnull', True), ('user__isnull', True), _connector='XOR'), name='channel_of_team_or_person')],
                    },
                ),
                migrations.CreateModel(
                    name='Notice',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                        ('event', models.CharField(max_length=40)),
                        ('subject', models.CharField(max_length=200)),
                        ('message', models.TextField()),
                        ('path', models.CharField(max_length=300)),
                        ('data', models.JSONField(default=dict)),
                        ('at', models.DateTimeField()),
                        ('digest', models.CharField(max_length=64)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'indexes': [models.Index(fields=['team', 'digest', 'at'], name='notificatio_team_id_a332a2_idx')],
                    },
                ),
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('next_check_at', models.DateTimeField(blank=True, db_index=True, null=True)),
                        ('lease_until', models.DateTimeField(blank=True, null=True)),
                        ('lease_token', models.CharField(blank=True, default='', max_length=32)),
                        ('check_failures', models.PositiveIntegerField(default=0)),
                        ('notice', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='notifications.notice')),
                        ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='notifications.channel')),
                        ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sent', 'Sent'), ('failed', 'Failed'), ('dropped', 'Dropped')], default='waiting', max_length=8)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('deadline_at', models.DateTimeField()),
                        ('finished_at', models.DateTimeField(null=True)),
                        ('outcome', models.CharField(blank=True, default='', max_length=300)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'constraints': [models.UniqueConstraint(fields=('notice', 'channel'), name='one_delivery_per_channel')],
                    },
                ),
                migrations.CreateModel(
                    name='DecisionLink',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('delivery', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='link', to='notifications.delivery')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decision_links', to=settings.AUTH_USER_MODEL)),
                        ('kind', models.CharField(max_length=10)),
                        ('object_id', models.BigIntegerField()),
                        ('step_index', models.PositiveSmallIntegerField(default=0)),
                        ('evidence_hash', models.CharField(max_length=64)),
                        ('nonce', models.CharField(max_length=32)),
                        ('digest', models.CharField(max_length=64, unique=True)),
                        ('created_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('used_at', models.DateTimeField(null=True)),
                        ('used_for', models.CharField(blank=True, default='', max_length=20)),
                    ],
                    options={
                        'ordering': ['-id'],
                    },
                ),
            ]
        )
    ]
