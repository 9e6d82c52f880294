"""The program of a load test's pod: start Triton, wait until it loads the model, send it requests.

It travels as the text of a command behind that of pod_values.py, so both have the standard library only and run
on Python 3.9 and newer.
Arguments: the path of the termination message, then Triton's command line. SLIPWAY_LOAD_TEST is the plan
(load_plan.py). The result is JSON in the termination message, of which Kubernetes keeps 4096 bytes.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from deployments.load_tests.domain.pod_values import values_of

Json = dict[str, Any]

HOST = "127.0.0.1"
POLL_SECONDS = 0.1
SAMPLE_SECONDS = 0.3
WARM_REQUESTS = 5
MESSAGE_BYTES = 4000
DETAIL_LENGTH = 1500
LOG_BYTES = 256 * 1024
ERROR_LINE = re.compile(r'^E\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] ?"?')
# Of other levels, of tables, and of Triton's own end.
OTHER_LINE = re.compile(r"^([IWE]\d{4} |[+|]|error: |$)")
STACK = re.compile(r"\s+At:\s+(\S+\(\d+\): \S+\s*)+")
# Where Triton is, which is no news about the model.
NO_CAUSE = ("creating server", "Non-graceful termination", "CudaDriverHelper")
# A sequence of one request, for models that batch sequences; others take no notice.
PARAMETERS = {
    "binary_data_output": True,
    "sequence_id": 1,
    "sequence_start": True,
    "sequence_end": True,
}


pause = time.sleep  # noqa: TID251  in the pod, where no worker waits for it


class LoadTestEnded(Exception):
    """The test is over with this outcome and detail."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(detail)
        self.outcome, self.detail = outcome, detail


class LoadTrial:
    def __init__(self, command: list[str], plan: Json, folder: Path) -> None:
        self.plan, self.folder, self.log = plan, folder, folder / "log"
        self.deadline = time.monotonic() + plan["seconds"]
        self.port = port_of(command, "--http-port")
        self.metrics_port = port_of(command, "--metrics-port")
        self.measured: Json = {"memory_mib": 0}
        self.started = time.monotonic()
        if plan["is_on_cpu"]:
            command = on_processor(command, folder)
        with self.log.open("wb") as log:
            self.server = subprocess.Popen(  # noqa: S603  Triton's, of the Job
                command, stdout=log, stderr=subprocess.STDOUT
            )
        threading.Thread(target=self.sample, daemon=True).start()

    def run(self) -> Json:
        try:
            self.wait_until_loaded()
            self.answer()
        except LoadTestEnded as end:
            return {"outcome": end.outcome, "detail": end.detail[-DETAIL_LENGTH:], **self.measured}
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            detail = f"the program of the load test failed: {type(error).__name__}: {error}"
            return {"outcome": "no_runtime", "detail": detail[:DETAIL_LENGTH], **self.measured}
        return {"outcome": "answered", **self.measured}

    def wait_until_loaded(self) -> None:
        while not self.is_loaded():
            self.check("load", "not_loaded")
            pause(POLL_SECONDS)
        self.measured["load_seconds"] = round(time.monotonic() - self.started, 3)

    def is_loaded(self) -> bool:
        """Return whether Triton has loaded the model. The models of an ensemble count too."""
        try:
            return self.request("GET", "/v2/health/ready")[0] == 200
        except OSError:
            return False

    def answer(self) -> None:
        error = "it loads, but no request could be generated from its signature"
        for alternative in self.plan["requests"]:
            head, body = request_of(alternative)
            seconds, status, content, length = self.infer(head, body)
            if status == 200:
                self.measured["first_ms"] = round(seconds * 1000, 3)
                self.measured["outputs"] = outputs_of(content, length)
                warm = [self.infer(head, body)[0] for _ in range(WARM_REQUESTS)]
                self.measured["warm_ms"] = round(statistics.median(warm) * 1000, 3)
                self.measured["gpu_memory_mib"] = self.gpu_memory_mib()
                self.answer_sample()
                return
            error = error_of(content)
        raise LoadTestEnded("not_answered" if self.plan["requests"] else "no_request", error)

    def answer_sample(self) -> None:
        """Collect the answers to rows whose scores are known, for the portal to compare."""
        answers = b""
        for batch in self.plan.get("sample", ()):
            _, status, content, length = self.infer(*request_of(batch))
            if status != 200:
                raise LoadTestEnded("not_answered", error_of(content))
            answers += content[length:]
        self.measured["sample_answers"] = base64.b64encode(answers).decode()

    def infer(self, head: bytes, body: bytes) -> tuple[float, int, bytes, int]:
        path = f"/v2/models/{self.plan['model']}/infer"
        headers = {
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(head)),
        }
        started = time.monotonic()
        try:
            status, content, length = self.request("POST", path, head + body, headers)
        except (OSError, http.client.HTTPException):
            pause(1)
            self.check("answer", "crashed")
            raise LoadTestEnded(
                "crashed", "Triton closed the connection: " + self.cause()
            ) from None
        return time.monotonic() - started, status, content, length

    def request(
        self, method: str, path: str, body: bytes = b"", headers: Json | None = None, port: int = 0
    ) -> tuple[int, bytes, int]:
        left = max(self.deadline - time.monotonic(), 0.1)
        connection = http.client.HTTPConnection(HOST, port or self.port, timeout=left)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            length = response.headers.get("Inference-Header-Content-Length", "0")
            return response.status, response.read(), int(length)
        finally:
            connection.close()

    def check(self, phase: str, outcome: str) -> None:
        """Raise Ended where Triton has ended, or the time is over."""
        code = self.server.poll()
        if code == -signal.SIGKILL:
            raise LoadTestEnded(
                "too_large", "it was killed, most likely for more memory than its limit"
            )
        if code is not None:
            by_signal = code < 0 and f"Triton was ended by {signal.Signals(-code).name}"
            raise LoadTestEnded(outcome, by_signal or self.cause())
        if time.monotonic() > self.deadline:
            raise LoadTestEnded("late", f"it did not {phase} within {self.plan['seconds']} seconds")

    def cause(self) -> str:
        lines = self.log.read_bytes()[-LOG_BYTES:].decode(errors="replace").splitlines()
        entries: list[str] = []
        for line in lines:
            if ERROR_LINE.match(line):
                entries.append(ERROR_LINE.sub("", line))
            elif entries and not OTHER_LINE.match(line):
                entries[-1] += " " + line.strip()
        errors = [e.strip(' "') for e in entries if not any(part in e for part in NO_CAUSE)]
        own = [error for error in errors if error.startswith("failed to load")]
        text = "; ".join(dict.fromkeys(own or errors)) or " ".join(lines[-5:])
        for root in (str(self.folder / "models"), "/mnt/models"):
            text = text.replace(root + "/", "")
        # Without the stack of a Python model.
        text = STACK.sub(" ", text.replace("\\n", "\n"))
        return " ".join(text.split())[:DETAIL_LENGTH]

    def sample(self) -> None:
        """Measure the memory of all processes of the container but this one, and keep its peak."""
        while True:
            self.measured["memory_mib"] = max(self.measured["memory_mib"], resident_mib())
            pause(SAMPLE_SECONDS)

    def gpu_memory_mib(self) -> int:
        """Return the used memory of the pod's GPUs in MiB. 0 where the metric is missing."""
        try:
            text = self.request("GET", "/metrics", port=self.metrics_port)[1].decode()
        except (OSError, http.client.HTTPException):
            return 0
        used = re.findall(r"^nv_gpu_memory_used_bytes\{[^}]*\} ([\d.e+]+)$", text, re.MULTILINE)
        return int(sum(map(float, used)) / 2**20)


def port_of(command: list[str], flag: str) -> int:
    return int(next(item for item in command if item.startswith(flag + "=")).split("=")[1])


def on_processor(command: list[str], folder: Path) -> list[str]:
    """Point the command at a copy of the repository whose instances need no GPU: the volume cannot be written."""
    flag = "--model-repository="
    source = Path(next(item for item in command if item.startswith(flag))[len(flag) :])
    for model in source.iterdir():
        target = folder / "models" / model.name
        target.mkdir(parents=True)
        for item in model.iterdir():
            (target / item.name).symlink_to(item)
        config = target / "config.pbtxt"
        if config.exists():
            text = re.sub(r"\bgpus\s*:\s*(\[[^\]]*\]|\d+)", "", config.read_text())
            config.unlink()
            config.write_text(re.sub(r"\bKIND_GPU\b", "KIND_CPU", text))
    own = f"{flag}{folder / 'models'}"
    return [own if item.startswith(flag) else item for item in command]


def resident_mib() -> int:
    size = os.sysconf("SC_PAGE_SIZE")
    pages, own = 0, str(os.getpid())
    root = os.getpgid(0)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != own:
            try:
                if os.getpgid(int(process.name)) == root:
                    pages += int((process / "statm").read_text().split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return pages * size // 2**20


def request_of(alternative: Json) -> tuple[bytes, bytes]:
    described: list[Json] = []
    bodies: list[bytes] = []
    for number, tensor in enumerate(alternative["inputs"]):
        given = {**tensor}
        if "values" in given:
            body = base64.b64decode(given.pop("values"))
        else:
            body = values_of(tensor["datatype"], tensor["shape"], alternative["below"], number)
        bodies.append(body)
        described.append({**given, "parameters": {"binary_data_size": len(body)}})
    head = json.dumps({"inputs": described, "parameters": PARAMETERS}).encode()
    return head, b"".join(bodies)


def outputs_of(content: bytes, length: int) -> list[Json]:
    outputs = json.loads(content[:length] or content)["outputs"]
    return [{key: item[key] for key in ("name", "datatype", "shape")} for item in outputs]


def error_of(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])[:DETAIL_LENGTH]
    except (ValueError, KeyError, TypeError):
        return content[:DETAIL_LENGTH].decode(errors="replace")


def write(path: str, result: Json) -> None:
    """Write the result within the size limit: first without outputs, from the end, then with a shorter detail."""
    while len(json.dumps(result)) > MESSAGE_BYTES and result.get("outputs"):
        result["outputs"].pop()
    while len(json.dumps(result)) > MESSAGE_BYTES:
        result["detail"] = result["detail"][: len(result["detail"]) // 2]
    Path(path).write_text(json.dumps(result))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        plan = json.loads(os.environ["SLIPWAY_LOAD_TEST"])
        trial = LoadTrial(sys.argv[2:], plan, Path(name))
        result = trial.run()
        trial.server.kill()
        trial.server.wait()
    write(sys.argv[1], result)


if __name__ == "__main__":
    main()
