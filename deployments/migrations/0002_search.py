"""Indexes of the search that only PostgreSQL has. SQLite, the demo's database, scans its few rows."""

from django.db import migrations

VECTORS = "CREATE INDEX version_words ON deployments_versiondocument USING gin (vector)"
# Without the extension, parts of words are found by a scan of the short texts.
HAS_TRIGRAMS = "SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'"
TRIGRAMS = "CREATE INDEX version_trigrams ON deployments_versiondocument USING gin (text gin_trgm_ops)"


def create(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(VECTORS, params=None)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(HAS_TRIGRAMS)
        has_trigrams = cursor.fetchone() is not None
    if has_trigrams:
        schema_editor.execute(TRIGRAMS, params=None)


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS version_words, version_trigrams", params=None)


class Migration(migrations.Migration):
    initial = True
    dependencies = [("deployments", "0001_schema")]
    operations = [migrations.RunPython(create, drop)]
