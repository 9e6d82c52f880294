"""Drop the tables of 0.2.0 whose rows are elsewhere since `0004_rows_of_0_2_0`."""

from importlib import import_module

from django.db import migrations

from portal.core.schema.upgrades import FreshTables

fresh = FreshTables(import_module("deployments.migrations.0001_schema").Migration)


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [("deployments", "0004_rows_of_0_2_0")]
    operations = [
        migrations.DeleteModel("PipelineApproval"),
        migrations.DeleteModel("PipelineChange"),
        migrations.DeleteModel("OwnRequest"),
        migrations.RemoveField("ModelVersion", "declared_sha256"),
        migrations.RemoveField("ModelVersion", "upload_id"),
        migrations.RemoveField("ModelVersion", "part_size_bytes"),
        migrations.RemoveField("ModelVersion", "key"),
        migrations.RemoveField("ModelVersion", "s3_version_id"),
        *fresh.alter_fields("ChangeRequest", "team"),
        migrations.RemoveConstraint("ChangeRequest", "one_open_change_per_deployment"),
        *fresh.add_constraints(
            "ChangeRequest",
            *("one_subject_and_a_kind_of_it", "one_open_change_per_deployment"),
            "one_open_change_per_pipeline",
        ),
        *fresh.add_constraints("GitExport", "one_subject_of_an_export"),
    ]
