"""CSV as the input of a job: each column is an input, and what is wrong names the line and the column."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.batch.domain import chunks, csv_files, csv_rows, program
from deployments.batch.domain.csv_rows import BadRow
from deployments.batch.services import advance
from deployments.models import BatchJob, ModelVersion
from deployments.registry.domain.signatures import Signature, Tensor
from portal.core.definitions import Rejected
from tests.deployments.batch.bench import IN, Bench, Server

TABLE = Signature(
    inputs=(
        Tensor("age", "INT8", (-1,)),
        Tensor("name", "STRING", (-1, 1)),
        Tensor("pixels", "FP32", (-1, 2, 2)),
    ),
    outputs=(),
    max_batch_size=8,
)
COLUMNS = [["age", "INT8", [1, 1]], ["name", "BYTES", [1, 1]], ["pixels", "FP32", [1, 2, 2]]]
ONE = [["x", "FP32", [1]]]


def columns_of(header: str, signature: Signature = TABLE) -> list[Any]:
    return csv_files.columns_of(header.encode(), signature, name="f.csv", version="m:1")


def request_of(row: str, columns: Sequence[Any] = COLUMNS, line: int = 7) -> dict[str, Any]:
    return csv_rows.request_of(row.encode(), list(columns), line)


def test_a_row_becomes_a_request_by_name_and_datatype() -> None:
    assert columns_of("age,name,pixels\r\n") == COLUMNS
    assert columns_of("\ufeffname, id ,age,pixels\n")[1] == ["id", None, []]

    request = request_of('-5,"Müller, ""K""","[[1, 2.5], [3, 4]]"\r\n')

    assert request == {
        "inputs": [
            {"name": "age", "shape": [1, 1], "datatype": "INT8", "data": [-5]},
            {"name": "name", "shape": [1, 1], "datatype": "BYTES", "data": ['Müller, "K"']},
            {
                "name": "pixels",
                "shape": [1, 2, 2],
                "datatype": "FP32",
                "data": [1.0, 2.5, 3.0, 4.0],
            },
        ]
    }
    named = request_of("r7,1.5", [["id", None, []], *ONE])
    assert (named["id"], named["inputs"][0]["data"]) == ("r7", [1.5])
    dynamic = [["x", "FP32", [1, -1, 2]]]
    assert request_of('"[1,2,3,4]"', dynamic)["inputs"][0]["shape"] == [1, 2, 2]
    flag = request_of("TRUE", [["b", "BOOL", [1]]])
    assert flag["inputs"][0]["data"] == [True]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("200,x,[1]", "line 7, column age: '200' is not INT8"),
        ("1.5,x,[1]", "line 7, column age: '1.5' is not INT8"),
        ("1_0,x,[1]", "line 7, column age: '1_0' is not INT8"),
        (",x,[1]", "line 7, column age: '' is not INT8"),
        ('1,x,"[1, 2]"', "line 7, column pixels: '[1, 2]' is not a JSON list of 4 values"),
        ("1,x,4", "line 7, column pixels: '4' is not a JSON list of 4 values"),
        ('1,x,"[1,2,3,true]"', "line 7, column pixels: 'true' is not FP32"),
        ('1,x,"[1,2,3,NaN]"', "line 7, column pixels: 'NaN' is not FP32"),
        ("1,x", "line 7: it has 2 columns, and the header has 3"),
        ('1,"x', "line 7: it is not CSV: unexpected end of data"),
    ],
)
def test_a_bad_cell_names_its_line_and_column(row: str, problem: str) -> None:
    with pytest.raises(BadRow) as error:
        request_of(row)
    assert str(error.value) == problem


def test_bytes_that_are_no_text_name_their_line() -> None:
    with pytest.raises(BadRow, match="line 3: it is not UTF-8"):
        csv_rows.request_of(b"\xff", ONE, 3)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("age,name", "Line 1 of f.csv has no column “pixels”. The inputs are: age, name, pixels."),
        ("age,nam,pixels", "Line 1 of f.csv, column “nam”: m:1 has no such input."),
        ("age,age,name,pixels", "Line 1 of f.csv: the column “age” appears twice."),
        ("age;name;pixels", "Line 1 of f.csv, column “age;name;pixels”: m:1 has no such input."),
        ('"age', "Line 1 of f.csv is not a header of CSV in UTF-8."),
    ],
)
def test_a_header_that_does_not_fit_the_model_is_refused(header: str, problem: str) -> None:
    with pytest.raises(Rejected) as refusal:
        columns_of(header)
    assert problem in refusal.value.fields["input"]


def test_models_that_csv_cannot_call_are_refused() -> None:
    with pytest.raises(Rejected, match="must be JSON lines"):
        columns_of("x", Signature((), ()))
    half = Signature((Tensor("x", "FP16", (1,)),), ())
    with pytest.raises(Rejected, match="column “x”: it is FP16, which JSON cannot hold"):
        columns_of("x", half)


CELLS = st.text(st.sampled_from('a1 ,"\n\r;é'), max_size=6)


@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=25),
    st.integers(1, 12),
    st.integers(1, 60),
    st.booleans(),
)
def test_each_record_is_in_one_chunk_with_its_line(
    rows: list[tuple[str, str]], block: int, target: int, has_blanks: bool
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    starts, line = [], 2
    for row in rows:
        starts.append(line)
        writer.writerow(row)
        if has_blanks:
            text.write("\n")
        line = 2 + text.getvalue().count("\n")
    body = b"a,b\n" + text.getvalue().encode()

    lines = chunks.lines((body[i : i + block] for i in range(0, len(body), block)), "f")
    records = csv_files.records(lines, "f")
    _, header = next(records)
    made = list(
        chunks.cut(
            (record for _, record in records),
            file=0,
            first_row=1,
            target_bytes=target,
            header=header,
        )
    )

    read = []
    for chunk in made:
        part = csv_rows.lines_of(body[chunk.start : chunk.end])
        found = [
            (number, tuple(csv_rows.cells_of(record.decode().rstrip("\n"))))
            for number, record in csv_rows.records(part, chunk.first_line)
            if record.strip()
        ]
        assert len(found) == chunk.rows
        read += found
    # What csv reads between quotes is what was written.
    assert read == list(zip(starts, rows, strict=True))
    assert all(a.end == b.start for a, b in pairwise(made))


def test_a_quote_that_is_never_closed_is_refused_with_its_line() -> None:
    body = [b"x\n", b"1\n", b'"2\n', *[b"y" * 999 + b"\n"] * 1100]
    with pytest.raises(Rejected, match="Line 3 of f: the record is longer than 1,048,576 bytes"):
        list(csv_files.records(body, "f"))


def test_the_program_of_the_pods_is_one_text_that_starts_alone() -> None:
    run = subprocess.run(
        [sys.executable, "-I", "-c", program.TEXT, "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "KeyError: 'SLIPWAY_BATCH'" in run.stderr
    assert "deployments" not in [
        line.split()[1].partition(".")[0]
        for line in program.TEXT.splitlines()
        if line.startswith(("from ", "import "))
    ]


class Echo(Server):
    """Answers with the values that it got."""

    def answer(self, number: int, line: bytes) -> dict[str, Any]:
        self.asked += 1
        request = json.loads(line)
        values = [tensor["data"][0] for tensor in request["inputs"]]
        return {"row": number, "id": request.get("id"), "outputs": values}


@pytest.fixture
def adder(bench: Bench) -> Bench:
    signature = Signature((Tensor("x", "FP32", (1,)), Tensor("n", "INT32", (1,))), ())
    ModelVersion.objects.update(signature=signature.to_json())
    return bench


def finished(bench: Bench, job: BatchJob) -> BatchJob:
    bench.work(Echo())
    bench.tick(job)
    return bench.tick(job)


def test_a_csv_file_is_scored_and_bad_cells_are_errors_of_their_rows(adder: Bench) -> None:
    body = 'n,id,x\r\n1,a,0.5\r\n\r\nzwei,b,1\r\n3,"c\n""d""",2.5'
    adder.put(body.encode(), f"{IN}rows.csv")
    job = adder.running(input=f"s3://{adder.bucket}/{IN}rows.csv")
    assert job.total_rows == 3

    finished(adder, job)

    assert (job.state, job.failed_rows) == ("succeeded", 1)
    assert adder.rows() == [
        {"row": 1, "id": "a", "outputs": [1, 0.5]},
        {"row": 2, "error": "line 4, column n: 'zwei' is not INT32"},
        {"row": 3, "id": 'c\n"d"', "outputs": [3, 2.5]},
    ]
    assert job.first_error == "row 2: line 4, column n: 'zwei' is not INT32"


def test_csv_and_json_lines_are_read_from_one_prefix(adder: Bench) -> None:
    rows = "".join(f"{n},{n / 2}\n" for n in range(1, 5001))
    adder.put(f"n,x\n{rows}".encode(), f"{IN}a.csv")
    adder.put(b"x,n\n0.25,7\n", f"{IN}b.CSV")
    tensor = {"name": "n", "datatype": "INT32", "shape": [1], "data": [9]}
    adder.put(json.dumps({"inputs": [tensor]}).encode(), f"{IN}c.jsonl")
    job = adder.running(input=f"s3://{adder.bucket}/{IN}")

    finished(adder, job)

    rows_out = adder.rows()
    assert (job.state, len(rows_out), job.failed_rows) == ("succeeded", 5002, 0)
    assert job.chunks.count() > 2
    assert [row["row"] for row in rows_out] == list(range(1, 5003))
    assert rows_out[4999]["outputs"] == [5000, 2500.0]
    assert rows_out[5000]["outputs"] == [0.25, 7]
    assert rows_out[5001]["outputs"] == [9]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("n\n1\n", "Line 1 of batch/vision/in/rows.csv has no column “x”."),
        (
            "n,x,z\n1,2,3\n",
            "Line 1 of batch/vision/in/rows.csv, column “z”: detector:1 has no such input. Its inputs are: x, n.",
        ),
        (
            "n,x\n1,2\n1,two\n1,three\n",
            "First: batch/vision/in/rows.csv, line 3, column x: 'two' is not FP32.",
        ),
        ("\n1,2\n", "Line 1 of batch/vision/in/rows.csv is empty. It must name the columns."),
        ("n,x\n", "has no rows."),
    ],
)
def test_a_file_that_does_not_fit_starts_no_nodes(adder: Bench, body: str, reason: str) -> None:
    adder.put(body.encode(), f"{IN}rows.csv")
    job = adder.request(input=f"s3://{adder.bucket}/{IN}rows.csv", error_limit=1)
    adder.tick(job)

    assert job.state == "failed"
    assert reason in job.state_reason
    assert adder.world.cluster.writes == []
    assert advance.sweep() == 0
