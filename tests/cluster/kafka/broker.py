"""One Kafka broker, which is its own controller (KRaft). Clients log in with a password."""

from __future__ import annotations

import base64
import secrets
import subprocess
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slipway_localcluster.controllers import free_ports
from tests.cluster.processes import Server

USER = "jobs"
# A test moves a handful of messages: compiling quickly is worth more than running fast.
_JAVA = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp")
_TOOLS = "org.apache.kafka.tools"
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=OPEN
listeners=CONTROLLER://127.0.0.1:{controller},OPEN://127.0.0.1:{open},CLIENT://127.0.0.1:{client}
advertised.listeners=OPEN://127.0.0.1:{open},CLIENT://127.0.0.1:{client}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,OPEN:PLAINTEXT,CLIENT:SASL_PLAINTEXT
listener.name.client.sasl.enabled.mechanisms=PLAIN
listener.name.client.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """`address` wants the name `USER` and this password; Kafka's own tools use `open_address`."""

    address: str
    password: str
    open_address: str
    jars: Path

    def create_topic(self, name: str, partitions: int) -> None:
        self._run("TopicCommand", "--create", f"--topic={name}", f"--partitions={partitions}")

    def send(self, topic: str, messages: Iterable[object]) -> None:
        text = "".join(f"{message}\n" for message in messages)
        self._run("ConsoleProducer", f"--topic={topic}", stdin=text)

    def read_all(self, topic: str, group: str) -> None:
        """What a consumer group does when it has no message left: it commits the ends of the partitions."""
        where = (f"--group={group}", f"--topic={topic}")
        command = ("--reset-offsets", "--to-latest", "--execute")
        self._run("consumer.group.ConsumerGroupCommand", *where, *command)

    def _run(self, tool: str, *arguments: str, stdin: str = "") -> None:
        server = f"--bootstrap-server={self.open_address}"
        _run(self.jars, f"{_TOOLS}.{tool}", server, *arguments, stdin=stdin)


@contextmanager
def running(jars: Path, folder: Path) -> Iterator[Broker]:
    controller, open_port, client = free_ports.take(3)
    password = secrets.token_hex(8)
    settings = folder / "kafka.properties"
    settings.touch(mode=0o600)
    settings.write_text(
        _SETTINGS.format(
            controller=controller,
            open=open_port,
            client=client,
            user=USER,
            password=password,
            data=folder / "kafka",
        )
    )
    identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    _run(
        jars,
        "kafka.tools.StorageTool",
        "format",
        f"--cluster-id={identity}",
        f"--config={settings}",
    )
    server = Server([*_command(jars), "kafka.Kafka", settings], folder=folder)
    try:
        server.wait_until_listening(client)
        yield Broker(f"127.0.0.1:{client}", password, f"127.0.0.1:{open_port}", jars)
    finally:
        server.stop()


def _command(jars: Path) -> list[str]:
    return [*_JAVA, f"{jars}/*"]


def _run(jars: Path, *arguments: str, stdin: str = "") -> None:
    done = subprocess.run(
        [*_command(jars), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{arguments[0]}: {done.stdout}{done.stderr}"
