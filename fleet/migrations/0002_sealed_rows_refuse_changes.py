"""The ledger is append-only in the database itself. SQLite, the demo's database, is left without."""

from django.db import migrations

CREATE = """
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
DROP = """
DROP TRIGGER ledger_rows_are_kept ON fleet_ledgerrow;
DROP TRIGGER ledger_rows_are_final ON fleet_ledgerrow;
DROP FUNCTION slipway_refuse_ledger_change();
"""


def _run(statements):
    def run(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(statements, params=None)

    return run


class Migration(migrations.Migration):
    dependencies = [("fleet", "0001_initial")]
    operations = [migrations.RunPython(_run(CREATE), _run(DROP))]
