"""Addresses in S3 where a batch job reads and writes, and which of them a team may use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from deployments.imports.domain import allowed_prefixes
from deployments.imports.domain.addresses import BucketAddress
from portal.core.definitions import Rejected

MAX_LENGTH: Final = 700
S3: Final = "s3://"
# Of the portal's bucket: files of the teams, and what workers and portal tell each other.
TEAMS: Final = "batch/"
WORK: Final = "batch-work/"
_ADDRESS: Final = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<key>[A-Za-z0-9!_.*'()=+,@:/ -]+)"
)


# What the end of a name says of its rows.
JSON_LINES: Final = "jsonl"
CSV: Final = "csv"
ENDINGS: Final = ".jsonl or .csv"


def kind_of(key: str) -> str | None:
    """Return the kind of rows by the ending of a key. None for other endings; a file that is named by itself may
    have any and then has JSON lines.
    """
    ending = key.rpartition(".")[2].lower() if "." in key else ""
    if ending in ("jsonl", "ndjson", "json"):
        return JSON_LINES
    return CSV if ending == "csv" else None


def team_area(bucket: str, team: str) -> str:
    """Return the address of the team's area. It ends with "/", so that vision does not match vision-lab."""
    return f"s3://{bucket}/{TEAMS}{team}/"


def default_output(bucket: str, team: str, job: str) -> str:
    """Return a prefix of the job alone: its name is unique in the team."""
    return f"{team_area(bucket, team)}scores/{job}/"


def parse_input(text: str, *, bucket: str, team: str, patterns: Sequence[str]) -> BucketAddress:
    """Parse the input: a file, or a prefix that ends with "/". Raises Rejected."""
    address = _parse(text, "input")
    allowed = (team_area(bucket, team), *patterns)
    # Of the portal's own bucket, which has the files of all teams, the team's area only.
    usable = allowed[:1] if address.bucket == bucket else allowed
    if not allowed_prefixes.is_allowed(usable, address, team=team):
        listed = allowed_prefixes.describe(allowed, team=team)
        raise _rejected(
            "input", f"{team} may not read {uri_of(address)}. Use a path below {listed}."
        )
    return address


def parse_output(text: str, *, bucket: str, team: str, source: BucketAddress) -> BucketAddress:
    """Parse the output: a prefix of the team's own area, apart from the input. Raises Rejected."""
    address = parse_prefix(text, bucket=bucket, team=team)
    folder = uri_of(source) if is_prefix(source) else uri_of(source).rpartition("/")[0] + "/"
    if (uri_of(address).startswith(folder) and is_prefix(source)) or folder == uri_of(address):
        raise _rejected(
            "output", f"The output must not lie in the input {folder}. Use another prefix."
        )
    if uri_of(source).startswith(uri_of(address)):
        raise _rejected("output", f"The input lies in {uri_of(address)}. Use another prefix.")
    return address


def parse_prefix(text: str, *, bucket: str, team: str) -> BucketAddress:
    """Parse a prefix of the team's own area. Raises Rejected."""
    address = _parse(text.strip().rstrip("/") + "/", "output")
    area = team_area(bucket, team)
    if not uri_of(address).startswith(area) or uri_of(address) == area:
        raise _rejected("output", f"{team} may not write {uri_of(address)}. Use {area}NAME/.")
    return address


def is_prefix(address: BucketAddress) -> bool:
    return address.key.endswith("/")


def uri_of(address: BucketAddress) -> str:
    return f"s3://{address.bucket}/{address.key}"


def read(uri: str) -> BucketAddress:
    """Parse a stored S3 address."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return BucketAddress(bucket, key)


def part_key(output: str, number: int) -> str:
    """Return the key of a part. It is the same for each attempt at a chunk, so that its rows exist once."""
    return f"{read(output).key}part-{number:05d}.jsonl"


def work_prefix(job_id: int) -> str:
    return f"{WORK}{job_id}/"


def mark_key(job_id: int, number: int) -> str:
    """Return the key of a mark, which is written after the part when the chunk is done."""
    return f"{marks_prefix(job_id)}{number:05d}.json"


def marks_prefix(job_id: int) -> str:
    return f"{work_prefix(job_id)}marks/"


def report_key(job_id: int, number: int) -> str:
    """Return the key of a queue worker's report. Reports are read in the order of their numbers."""
    return f"{work_prefix(job_id)}reports/{number:07d}.json"


def list_key(job_id: int, attempt: int, worker: int) -> str:
    return f"{work_prefix(job_id)}lists/{attempt}/{worker}.json"


def library_key(job_id: int, attempt: int) -> str:
    """Return the key of the library that queue workers import. Its digest is in the plan of the same attempt."""
    return f"{work_prefix(job_id)}library/{attempt}.zip"


def number_of_mark(key: str) -> int | None:
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isascii() and name.isdigit() else None


def _parse(text: str, field: str) -> BucketAddress:
    text = text.strip()
    match = _ADDRESS.fullmatch(text)
    if len(text) > MAX_LENGTH or match is None:
        raise _rejected(
            field,
            f"Enter an address such as s3://bucket/folder/ of at most {MAX_LENGTH} letters, digits and "
            "!_.*'()=+,@:- characters.",
        )
    key = match["key"]
    parts = key.rstrip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise _rejected(field, f"{text} has an empty or dotted folder. Write the path without it.")
    return BucketAddress(match["bucket"], key)


def _rejected(field: str, problem: str) -> Rejected:
    return Rejected(problem, {field: problem})
