"""Change the price catalogue: load lists, enter prices, remove them. Each row keeps its source and day.

Sealed hours keep the price they were sealed with.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db import transaction

from fleet.models import InstancePrice, PriceOrigin
from fleet.prices.domain import price_rows
from fleet.prices.domain.price_rows import PriceRow, RowProblem
from fleet.prices.services import hardware
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Invalid, NotFound

LOADED = register("prices.loaded", "loaded prices")
ENTERED = register("prices.entered", "entered a price")
REMOVED = register("prices.removed", "removed a price")
# Makes the error of a row from its place, the column and what to write.
Refuse = Callable[[int, str, str], Invalid]
CATALOGUE = Path(__file__).resolve().parent.parent / "data" / "gpu_instances.csv"
MAX_BYTES: Final = 2**20
_MAX_ROWS: Final = 5_000
_NEEDED: Final = ("instance_type", "region", "usd_per_hour")
_KEY: Final = ("instance_type", "region", "capacity_type", "valid_from")
_FIELDS: Final = ("usd_per_hour_amount", "source", "origin", *price_rows.HARDWARE)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of loading a price list. `unpriced` are the types without a price in the file."""

    prices: int
    new: int
    unpriced: tuple[str, ...]


def load_catalogue(*, actor: Actor, path: Path = CATALOGUE) -> LoadResult:
    """Add the file's prices. Loading the same file again changes nothing.

    Raises Invalid naming the line that cannot be read; then nothing is loaded.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Invalid(f"{path} could not be read: {reason}.") from error
    origin = PriceOrigin.CATALOGUE if path == CATALOGUE else PriceOrigin.PERSON
    return load_text(actor=actor, text=text, origin=origin)


def load_bytes(*, actor: Actor, content: bytes) -> LoadResult:
    """Load a CSV file that somebody chose on the page."""
    if len(content) > MAX_BYTES:
        raise Invalid(f"The file has more than {MAX_BYTES // 2**20} MiB.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid("The file is not UTF-8 text. Save it as CSV UTF-8.") from error
    return load_text(actor=actor, text=text)


def load_text(*, actor: Actor, text: str, origin: PriceOrigin = PriceOrigin.PERSON) -> LoadResult:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        reader.fieldnames = named = [name.strip().lower() for name in reader.fieldnames or ()]
        missing = [name for name in _NEEDED if name not in named]
        if missing and len(named) == 1 and ";" in named[0]:
            raise Invalid("The columns are separated by semicolons. Save the file with commas.")
        if missing:
            raise Invalid(
                f"The {'columns' if len(missing) > 1 else 'column'} {', '.join(missing)} "
                f"{'are' if len(missing) > 1 else 'is'} missing. The first line of the file names "
                f"its columns: {', '.join(price_rows.COLUMNS)}."
            )
        rows = [_whole(row, line) for line, row in enumerate(reader, start=2)]
    except csv.Error as error:
        raise Invalid(f"The file is not CSV: {error}.") from error
    return load_rows(actor=actor, rows=rows, origin=origin)


def _whole(row: dict[str | Any, Any], line: int) -> dict[str, str]:
    if None in row:
        raise Invalid(
            f"Line {line} has more cells than the first line. Use a dot in numbers, and quotes around text with commas."
        )
    return row


def _refuse_line(index: int, column: str, message: str) -> Invalid:
    """Name the line of a file whose first line has the columns."""
    place = f"Line {index + 2}, {column}" if column else f"Line {index + 2}"
    return Invalid(f"{place}: {message}")


def load_rows(
    *,
    actor: Actor,
    rows: Iterable[Mapping[str, str]],
    origin: PriceOrigin = PriceOrigin.PERSON,
    refuse: Refuse = _refuse_line,
) -> LoadResult:
    """Load rows with the columns of fleet/prices/data/gpu_instances.csv; those of the hardware may be left out
    where the type is known. Rows with an empty price are skipped. `refuse` makes the error of a row, by its
    place from 0.
    """
    policy.require_platform_admin(actor)
    today = clock.now().date()
    known = hardware.KnownHardware()
    priced: dict[tuple[object, ...], InstancePrice] = {}
    unpriced: list[str] = []
    for index, row in enumerate(rows):
        if index >= _MAX_ROWS:
            raise Invalid(f"The file has more than {_MAX_ROWS:,} prices.")
        if not (row.get("usd_per_hour") or "").strip():
            unpriced.append(row.get("instance_type") or "")
            continue
        try:
            model = _model(price_rows.parse(row, today=today), known, origin)
        except RowProblem as problem:
            raise refuse(index, problem.column, problem.message) from problem
        key = tuple(getattr(model, name) for name in _KEY)
        other = priced.setdefault(key, model)
        if other.usd_per_hour_amount != model.usd_per_hour_amount:
            raise refuse(index, "", f"Another price of {_label(model)} is listed before it.")
        priced[key] = model
    with transaction.atomic():
        before = InstancePrice.objects.count()
        _write(priced.values())
        new = InstancePrice.objects.count() - before
        if new or (origin == PriceOrigin.PERSON and priced):
            trail.record(
                actor=actor,
                action=LOADED,
                obj=InstancePrice.objects.latest("pk"),
                label="1 price" if len(priced) == 1 else f"{len(priced)} prices",
                after={"new": new, "sources": sorted({p.source for p in priced.values()})},
            )
    return LoadResult(len(priced), new, tuple(unpriced))


def enter(*, actor: Actor, row: Mapping[str, str]) -> None:
    """Enter one price. On a day that has one already, it replaces that. Raises Invalid by field."""
    policy.require_platform_admin(actor)
    try:
        parsed = price_rows.parse(row, today=clock.now().date())
        model = _model(parsed, hardware.KnownHardware(), PriceOrigin.PERSON)
    except RowProblem as problem:
        raise Invalid(problem.message, fields={problem.column: problem.message}) from problem
    key = {name: getattr(model, name) for name in _KEY}
    with transaction.atomic():
        before = InstancePrice.objects.filter(**key).first()
        _write([model])
        trail.record(
            actor=actor,
            action=ENTERED,
            obj=InstancePrice.objects.get(**key),
            label=_label(model),
            before={"usd_per_hour": str(before.usd_per_hour_amount)} if before else {},
            after={"usd_per_hour": str(model.usd_per_hour_amount), "source": model.source},
        )


def remove(*, actor: Actor, price_id: int) -> str:
    """Remove one price; the type it was of. Raises NotFound."""
    policy.require_platform_admin(actor)
    with transaction.atomic():
        row = InstancePrice.objects.select_for_update().filter(pk=price_id).first()
        if row is None:
            raise NotFound("This price no longer exists.")
        trail.record(
            actor=actor,
            action=REMOVED,
            obj=row,
            label=_label(row),
            before={"usd_per_hour": str(row.usd_per_hour_amount), "source": row.source},
        )
        row.delete()
    return row.instance_type


def add_listed(rows: Iterable[PriceRow]) -> int:
    """Add prices that AWS lists; the number of rows. The caller checked that they are new."""
    known = hardware.KnownHardware()
    models = [_model(row, known, PriceOrigin.AWS) for row in rows]
    _write(models)
    return len(models)


def _write(models: Iterable[InstancePrice]) -> None:
    InstancePrice.objects.bulk_create(
        models, update_conflicts=True, unique_fields=_KEY, update_fields=_FIELDS
    )


def _model(row: PriceRow, known: hardware.KnownHardware, origin: PriceOrigin) -> InstancePrice:
    facts = row.hardware or known.find(row.instance_type)
    if facts is None:
        raise RowProblem(
            "instance_type",
            f"{row.instance_type} is unknown. Enter its GPUs and memory too.",
        )
    return InstancePrice(
        instance_type=row.instance_type,
        region=row.region,
        capacity_type=row.capacity_type,
        usd_per_hour_amount=row.usd_per_hour_amount,
        source=row.source,
        origin=origin,
        valid_from=row.valid_from,
        **{name: getattr(facts, name) for name in price_rows.HARDWARE},
    )


def _label(row: InstancePrice) -> str:
    return f"{row.instance_type} {row.capacity_type} in {row.region} from {row.valid_from}"
