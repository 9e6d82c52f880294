"""Lead the deployments of 0.2.0 to the tables of `0001_schema`: new columns and tables, and other names."""

from importlib import import_module

from django.db import migrations

from portal.core.schema.upgrades import FreshTables

fresh = FreshTables(import_module("deployments.migrations.0001_schema").Migration)


def nullable(model, name):
    """The field as the rows of 0.2.0 can have it. `0005_end_of_0_2_0` makes it what it is."""
    field = fresh.field(model, name)
    field.null = True
    return field


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [
        ("deployments", "0002_version_former"),
        ("accounts", "0002_upgrade_from_0_2_0"),
        ("fleet", "0003_upgrade_from_0_2_0"),
    ]
    operations = [
        migrations.RenameField("ChangeRequest", "last_look", "last_recheck"),
        migrations.RenameField("Deployment", "is_heal_wanted", "is_revert_requested"),
        migrations.RenameField("GoldenResult", "words", "message"),
        migrations.RenameField("GoldenResult", "stable_words", "stable_message"),
        migrations.RenameField("GoldenRun", "words", "message"),
        migrations.RenameField("GoldenRun", "signature_words", "signature_message"),
        fresh.create(
            "AdviceItem",
            "Alert",
            "AnswerDay",
            "ArtifactFile",
            "Attestation",
            "BatchChunk",
            "BatchJob",
            "BatchUpload",
            "CallerKey",
            "Consumer",
            "DeploymentHealth",
            "EnvironmentRule",
            "HealthRecord",
            "Import",
            "ImportedFile",
            "KeyTokens",
            "LoadTestPlace",
            "LoadTestRun",
            "ServiceTarget",
            "SigningKey",
            "SigningRule",
            "SyntheticHour",
            "SyntheticRequest",
            "TargetCount",
            "TokenIssuer",
            "TrustRoot",
            "TrustedSigner",
            "VersionDocument",
            "VersionLabel",
            "VersionMetric",
        ),
        *fresh.add_fields(
            "ModelVersion",
            *("upload_prefix", "archive_sha256", "readme", "scan", "scan_engines", "release"),
        ),
        *fresh.add_fields("Revision", "baseline_of"),
        *fresh.add_fields(
            "Deployment",
            *("baseline_revision", "candidate_replicas", "caller_keys_generation", "trace"),
        ),
        *fresh.add_fields("Pipeline", "first_ready_at"),
        *fresh.add_fields("ApprovalRule", "only_opening"),
        migrations.AddField("ChangeRequest", "team", nullable("ChangeRequest", "team")),
        *fresh.alter_fields("ChangeRequest", "deployment", "kind", "gpu_name"),
        *fresh.add_fields("ChangeRequest", "pipeline", "promotion", "pipeline_spec", "trace"),
        *fresh.alter_fields("GitExport", "deployment"),
        *fresh.add_fields("GitExport", "pipeline"),
        *fresh.alter_fields("Rollout", "phase"),
        *fresh.add_fields("Rollout", "baseline_revision", "promoted_to", "reference", "watch_until"),
    ]
