"""The text of the statement that ranks groups. Its names are our own; all values are parameters.

A part is a query with the columns is_idle, n0, n1, … (the names of the group) and `_SUMS`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

# What a row of the answer is, in its first column.
PAGE, IDLE, ALL, BEFORE = range(4)
_SUMS = ("cost", "estimate", "gpu_ms", "unpriced_ms", "is_demo")


def select_sealed(names: int) -> str:
    """Return the SELECT for a query of sealed sums, which replaces {sql}."""
    given = _list("is_idle", "is_demo", *_names(names), "cost", "ms")
    return _template(given, _list("is_idle", *_names(names), "cost", "0", "ms", "0", "is_demo"))


def select_estimate(names: int) -> str:
    given = _list("is_idle", *_names(names), "estimate", "ms", "unpriced_ms")
    columns = _list("is_idle", *_names(names), "0", "estimate", "ms", "unpriced_ms", "false")
    return _template(given, columns)


def select_unpriced(names: int) -> str:
    """Return the SELECT for a query of the sealed sums without a price, which are among the other sums too."""
    given = _list("is_idle", "is_demo", *_names(names), "cost", "ms")
    return _template(given, _list("is_idle", *_names(names), "0", "0", "0", "ms", "false"))


def select_json(names: int) -> str:
    """Return the SELECT for a JSON array of [1 for idle, names, estimate, milliseconds, unpriced milliseconds]."""
    is_postgresql = connection.vendor == "postgresql"
    element = "value ->> {}" if is_postgresql else "json_extract(value, '$[{}]')"
    source = "jsonb_array_elements(CAST(%s AS jsonb))" if is_postgresql else "json_each(%s)"
    idle, *numbers = (
        f"CAST({element.format(place)} AS bigint)" for place in (0, *range(names + 1, names + 4))
    )
    texts = [f"CAST({element.format(place)} AS text)" for place in range(1, names + 1)]
    return f"SELECT {_list(f'{idle} = 1', *texts, '0', *numbers, 'false')} FROM {source}"  # noqa: S608  our own names


def statement(parts: Sequence[str], *, names: int, is_idle_split: bool, is_limited: bool) -> str:
    """Return the statement that selects the groups of a page, idle, and one row of all groups that are not idle,
    each with its kind, names, sums, and, for the last, the number of groups and of those without a price. If it
    is limited, it also selects one row of the groups before the page. Its parameters follow those of the parts:
    limit, offset, offset.
    """
    columns = _list("is_idle", *_names(names), *_SUMS)
    union = " UNION ALL ".join(f"SELECT * FROM ({part}) p{n}" for n, part in enumerate(parts))  # noqa: S608  our own names
    order = 'COLLATE "C"' if connection.vendor == "postgresql" else "COLLATE BINARY"
    ranked = _list("cost + estimate DESC", *(f"{name} {order}" for name in _names(names)))
    sums = [f"CAST(SUM({name}) AS bigint)" for name in _SUMS[:-1]]
    whole = [f"CAST(COALESCE(SUM({name}), 0) AS bigint)" for name in _SUMS]
    before = f"""
        UNION ALL
        SELECT {_list(str(BEFORE), *["''"] * names, *whole)}, 0, 0
        FROM (SELECT * FROM totals WHERE NOT is_idle ORDER BY {ranked} LIMIT %s) earlier
    """  # noqa: S608  our own names
    group = [_group(name, is_idle_split=is_idle_split) for name in _names(names)]
    return f"""
        WITH parts ({columns}) AS ({union}),
        totals ({columns}) AS (
            SELECT {_list("is_idle", *group, *sums)}, MAX(CASE WHEN is_demo THEN 1 ELSE 0 END)
            FROM parts GROUP BY {_list(*map(str, range(1, names + 2)))}
        ),
        page AS (
            SELECT * FROM totals WHERE NOT is_idle
            ORDER BY {ranked} {"LIMIT %s OFFSET %s" if is_limited else ""}
        )
        SELECT {_list(str(PAGE), *_names(names), *_SUMS)}, 0, 0 FROM page
        UNION ALL
        SELECT {_list(str(IDLE), *_names(names), *_SUMS)}, 0, 0 FROM totals WHERE is_idle
        UNION ALL
        SELECT {_list(str(ALL), *["''"] * names, *whole)}, COUNT(*), COALESCE(SUM(CASE
            WHEN cost + estimate = 0 AND gpu_ms > 0 AND gpu_ms <= unpriced_ms THEN 1 ELSE 0 END), 0)
        FROM totals WHERE NOT is_idle {before if is_limited else ""}
    """  # noqa: S608  our own names


def _group(name: str, *, is_idle_split: bool) -> str:
    """Idle is of no team; clusters alone split it."""
    if is_idle_split:
        return f"COALESCE({name}, '')"
    return f"CASE WHEN is_idle THEN '' ELSE COALESCE({name}, '') END"


def _template(given: str, columns: str) -> str:
    return f"WITH part ({given}) AS ({{sql}}) SELECT {columns} FROM part"  # noqa: S608  our own names


def _names(count: int) -> list[str]:
    return [f"n{place}" for place in range(count)]


def _list(*columns: str) -> str:
    return ", ".join(columns)
