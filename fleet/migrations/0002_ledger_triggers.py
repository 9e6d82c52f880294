"""The ledger in the database itself: sealed rows are final, and each row is added to its sums when it is inserted.

SQLite, the demo's database, lets rows be changed. A migration that makes it write `fleet_ledgerrow` anew drops its
triggers: it has to create them again.
"""

from django.db import migrations

FINAL = """
CREATE FUNCTION slipway_refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'sealed ledger rows are never changed: add an adjustment row instead';
END;
$$;
CREATE TRIGGER ledger_rows_are_final BEFORE UPDATE OR DELETE ON fleet_ledgerrow
    FOR EACH ROW EXECUTE FUNCTION slipway_refuse_ledger_change();
-- A trigger for each row does not see TRUNCATE, so that one has its own.
CREATE TRIGGER ledger_rows_are_kept BEFORE TRUNCATE ON fleet_ledgerrow
    FOR EACH STATEMENT EXECUTE FUNCTION slipway_refuse_ledger_change();
"""
NOT_FINAL = """
DROP TRIGGER ledger_rows_are_kept ON fleet_ledgerrow;
DROP TRIGGER ledger_rows_are_final ON fleet_ledgerrow;
DROP FUNCTION slipway_refuse_ledger_change();
"""

LABELS = ("model", "deployment", "revision")
# What a trigger is named after: (table, its column of time, columns of labels) of the sums that it adds to.
SUMS = {
    "days": (
        ("fleet_ledgerteamhour", "hour", ()),
        ("fleet_ledgerteamday", "day", ()),
        ("fleet_ledgerday", "day", LABELS),
    ),
    "months": (("fleet_ledgermonth", "month", LABELS),),
    "four_hours": (("fleet_ledgerfourhours", "start", LABELS),),
}
TIMES_IN_POSTGRESQL = {
    "hour": "hour",
    "day": "(hour AT TIME ZONE 'UTC')::date",
    "month": "date_trunc('month', hour AT TIME ZONE 'UTC')::date",
    "start": "date_bin('4 hours', hour, '2000-01-01 00:00:00+00')",
}
TIMES_IN_SQLITE = {
    "hour": "NEW.hour",
    "day": "date(NEW.hour)",
    "month": "date(NEW.hour, 'start of month')",
    "start": "date(NEW.hour) || printf(' %02d:00:00', cast(strftime('%H', NEW.hour) AS integer) / 4 * 4)",
}


def _keys(time, labels):
    return [time, "cluster_name", "team_slug", "is_idle", "is_demo", *labels]


def _postgresql(table, time, labels, rows="new_rows"):
    keys = _keys(time, labels)
    expressions = [
        TIMES_IN_POSTGRESQL[time],
        *("cluster_name", "team_slug", "(kind = 'idle' OR (kind = 'adjustment' AND namespace = ''))", "is_demo"),
        *(f"coalesce(workload_labels->>'{name}', '')" for name in labels),
    ]
    numbers = ", ".join(str(n) for n in range(1, len(keys) + 1))
    # In the order of the key, so that two transactions never wait for each other.
    return f"""
    INSERT INTO {table} AS kept ({", ".join(keys)}, gpu_milliseconds, cost_micros)
    SELECT {", ".join(expressions)}, sum(gpu_milliseconds), sum((cost_amount * 1000000)::bigint)
    FROM {rows} GROUP BY {numbers} ORDER BY {numbers}
    ON CONFLICT ({", ".join(keys)}) DO UPDATE
    SET gpu_milliseconds = kept.gpu_milliseconds + excluded.gpu_milliseconds,
        cost_micros = kept.cost_micros + excluded.cost_micros;
    """


def _sqlite(table, time, labels, rows=""):
    keys = ", ".join(_keys(time, labels))
    expressions = [
        TIMES_IN_SQLITE[time],
        *("NEW.cluster_name", "NEW.team_slug"),
        *("(NEW.kind = 'idle' OR (NEW.kind = 'adjustment' AND NEW.namespace = ''))", "NEW.is_demo"),
        *(f"coalesce(cast(json_extract(NEW.workload_labels, '$.{name}') AS text), '')" for name in labels),
    ]
    return f"""
    INSERT INTO {table} ({keys}, gpu_milliseconds, cost_micros)
    SELECT {", ".join(expressions)}, NEW.gpu_milliseconds, cast(round(NEW.cost_amount * 1000000) AS integer)
    {rows} WHERE true
    ON CONFLICT ({keys}) DO UPDATE
    SET gpu_milliseconds = gpu_milliseconds + excluded.gpu_milliseconds,
        cost_micros = cost_micros + excluded.cost_micros;
    """


def sum_up(vendor, table, time, labels):
    """Return the statement that adds all rows of the ledger to the sums."""
    if vendor == "postgresql":
        return _postgresql(table, time, labels, "fleet_ledgerrow")
    return _sqlite(table, time, labels, "FROM fleet_ledgerrow AS NEW")


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FINAL, params=None)
    create_sums(apps, schema_editor)


def create_sums(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        for name, sums in SUMS.items():
            body = "".join(_sqlite(*one) for one in sums)
            schema_editor.execute(
                f"CREATE TRIGGER ledger_rows_add_to_{name} AFTER INSERT ON fleet_ledgerrow BEGIN {body} END",
                params=None,
            )
        return
    for name, sums in SUMS.items():
        body = "".join(_postgresql(*one) for one in sums)
        schema_editor.execute(
            f"""
            CREATE FUNCTION slipway_add_to_ledger_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN {body} RETURN NULL; END;
            $$;
            CREATE TRIGGER ledger_rows_add_to_{name} AFTER INSERT ON fleet_ledgerrow
                REFERENCING NEW TABLE AS new_rows
                FOR EACH STATEMENT EXECUTE FUNCTION slipway_add_to_ledger_{name}();
            """,
            params=None,
        )


def drop(apps, schema_editor):
    drop_sums(apps, schema_editor)
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(NOT_FINAL, params=None)


def drop_sums(apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    for name in SUMS:
        on = " ON fleet_ledgerrow" if is_postgresql else ""
        schema_editor.execute(f"DROP TRIGGER ledger_rows_add_to_{name}{on}", params=None)
        if is_postgresql:
            schema_editor.execute(f"DROP FUNCTION slipway_add_to_ledger_{name}()", params=None)


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("fleet", "0002_sealed_rows_refuse_changes"),
        ("fleet", "0004_sums_of_the_ledger"),
    ]
    dependencies = [("fleet", "0001_schema")]
    operations = [migrations.RunPython(create, drop)]
