"""All tables of the app. A new database begins here, one of 0.2.0 with the migrations that it replaces (ADR 95)."""

import django.db.models.deletion
from django.db import migrations, models

from portal.core.schema.operations import CreateModels


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('audit', '0001_initial'),
        ('audit', '0003_upgrade_from_0_2_0'),
    ]

    dependencies = []

    operations = [
        CreateModels(
            [
                migrations.CreateModel(
                    name='AuditEvent',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField(db_index=True)),
                        ('action', models.CharField(max_length=60)),
                        ('actor_id', models.BigIntegerField(null=True)),
                        ('actor_name', models.CharField(max_length=150)),
                        ('team_slug', models.CharField(blank=True, db_index=True, default='', max_length=32)),
                        ('object_type', models.CharField(max_length=40)),
                        ('object_id', models.CharField(max_length=40)),
                        ('object_label', models.CharField(max_length=200)),
                        ('before', models.JSONField(default=dict)),
                        ('after', models.JSONField(default=dict)),
                        ('reason', models.TextField(blank=True, default='')),
                        ('evidence', models.CharField(blank=True, default='', max_length=64)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'indexes': [models.Index(fields=['object_type', 'object_id'], name='audit_audit_object__0e78a5_idx')],
                    },
                ),
                migrations.CreateModel(
                    name='ChainLink',
                    fields=[
                        ('position', models.BigIntegerField(primary_key=True, serialize=False)),
                        ('event_id', models.BigIntegerField(unique=True)),
                        ('hash', models.CharField(max_length=64)),
                        ('sealed_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='ChainAnchor',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('day', models.DateField(unique=True)),
                        ('position', models.BigIntegerField()),
                        ('hash', models.CharField(max_length=64)),
                        ('last_event_id', models.BigIntegerField()),
                        ('made_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='AnchorCopy',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('anchor', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='copy', to='audit.chainanchor')),
                        ('key', models.CharField(max_length=200)),
                        ('version_id', models.CharField(blank=True, max_length=200)),
                        ('locked_until', models.DateTimeField(null=True)),
                        ('stored_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='ChainCheck',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField()),
                        ('position', models.BigIntegerField()),
                        ('anchors', models.PositiveIntegerField()),
                        ('problem', models.TextField(blank=True, default='')),
                    ],
                    options={
                        'ordering': ['-id'],
                    },
                ),
                migrations.CreateModel(
                    name='StreamPosition',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('target', models.CharField(max_length=300, unique=True)),
                        ('position', models.BigIntegerField(default=0)),
                        ('sent_at', models.DateTimeField(null=True)),
                        ('error', models.TextField(blank=True, default='')),
                    ],
                ),
            ]
        )
    ]
