"""Lead the fleet of 0.2.0 to the tables of `0001_schema`."""

from importlib import import_module

from django.db import migrations

from portal.core.schema.upgrades import FreshTables

fresh = FreshTables(import_module("fleet.migrations.0001_schema").Migration)
# The text of each price in the list that 0.2.0 shipped. What was loaded with another was entered by a person.
SHIPPED = "karpenter-provider-aws, generated from the AWS price list (Linux, on-demand)"
TOKENS = (
    "prompt_tokens",
    "generation_tokens",
    "first_tokens",
    "first_token_us",
    "later_tokens",
    "later_token_us",
    "preemptions",
    "request_aborted",
)


def tell_entered_prices(apps, schema_editor):
    prices = apps.get_model("fleet", "InstancePrice").objects
    prices.exclude(source=SHIPPED).update(origin="person")


class Migration(migrations.Migration):
    downtime = "Pods of 0.2.0 do not know the tables that it leads to."
    dependencies = [
        ("fleet", "0001_initial"),
        ("accounts", "0002_upgrade_from_0_2_0"),
    ]
    operations = [
        fresh.create(
            "BudgetAlert",
            "CallerCounter",
            "CallerHour",
            "CallerReading",
            "DeviceClaim",
            "DeviceSlice",
            "EnergyReading",
            "FleetAction",
            "LedgerDay",
            "LedgerFourHours",
            "LedgerMonth",
            "LedgerTeamDay",
            "LedgerTeamHour",
            "OpenHour",
            "OpenHourSum",
            "PoolOfficeHours",
            "ScrapeReading",
            "SummedDay",
            "TeamUsageDay",
            "TeamUsageHour",
            "WorkloadDay",
        ),
        *fresh.add_fields("Cluster", "devices_read_at", "device_taint_rules"),
        *fresh.add_fields(
            "Node",
            *("claimable", "tainted_gpus", "conditions", "taints", "xids", "xids_read_at"),
            *("neuron_utilisation", "neuron_memory_mib", "neuron_read_at"),
        ),
        *fresh.add_fields("Pod", "plugin_units", "devices", "start_seconds", "instance_types"),
        *fresh.add_fields("Workload", "metrics_port", "metrics_path", "ends_at"),
        *fresh.add_fields(
            "MetricSample", *TOKENS, "running_requests", "kv_cache_usage", "first_token_times"
        ),
        *fresh.add_fields("WorkloadMinute", *TOKENS),
        *fresh.add_fields("WorkloadHour", *TOKENS, "energy_mj", "energy_ms"),
        *fresh.add_fields("InstancePrice", "origin"),
        migrations.RunPython(tell_entered_prices, migrations.RunPython.noop),
        *fresh.alter_fields("LedgerRow", "hour"),
        *fresh.add_indexes(
            "LedgerRow",
            "rows_of_a_deployment",
            "fleet_ledge_hour_6c8403_idx",
            "adjustments_of_a_node",
        ),
    ]
