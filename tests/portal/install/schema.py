"""What a PostgreSQL database is made of, without rows and without the order of columns."""

from __future__ import annotations

import re

import psycopg

_PARTS = {
    "column": """
        SELECT table_name, column_name, data_type, character_maximum_length, numeric_precision, numeric_scale,
            is_nullable, column_default, is_identity, identity_generation
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "constraint": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'""",
    "index": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "trigger": """
        SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), tgenabled
        FROM pg_trigger WHERE NOT tgisinternal""",
    "function": """
        SELECT proname, pg_get_functiondef(pg_proc.oid) FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
            AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')""",
}


def schema_of(connection: psycopg.Connection) -> set[str]:
    """One line for each column, constraint, index, trigger and function; white space counts once."""
    return {
        re.sub(r"\s+", " ", " ".join([part, *map(str, row)]))
        for part, query in _PARTS.items()
        for row in connection.execute(query).fetchall()
    }
