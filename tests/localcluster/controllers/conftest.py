"""A running cluster with real Triton, Envoy and S3, started once for the tests that need it."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.agents import Agents
from slipway_localcluster.controllers.local_pods import LocalPods
from slipway_localcluster.controllers.manager import ControllerManager
from slipway_localcluster.controllers.storage import S3Settings
from slipway_localcluster.kinds import NAMESPACE, SERVING_RUNTIME
from slipway_localcluster.store import Store
from tests.fixtures.aws_server import serving_aws
from tests.localcluster.controllers import manifests, onnx_models
from tests.localcluster.controllers.running import BUCKET, Running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "cluster.db")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Settings]:
    with serving_aws("s3") as address:
        settings = S3Settings(address, "testing", "testing", "us-east-1")
        client = boto3.client(
            "s3",
            endpoint_url=settings.endpoint_url,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=BUCKET)
        for key, body in onnx_models.objects().items():
            client.put_object(Bucket=BUCKET, Key=key, Body=body)
        yield settings


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, s3: S3Settings) -> Iterator[Running]:
    data_dir = tmp_path_factory.mktemp("cluster")
    store = Store(data_dir / "cluster.db", has_node_agent=True)
    gateway_port = free_ports.take_one()
    agents = Agents(store, data_dir=data_dir, gateway_port=gateway_port, s3=s3, has_own_envoy=True)
    controllers = ControllerManager(store)
    agents.start()
    controllers.start()
    store.create(NAMESPACE, manifests.namespace())
    store.create(SERVING_RUNTIME, manifests.runtime())
    yield Running(store, LocalPods(store, data_dir), data_dir, gateway_port)
    controllers.stop()
    agents.stop()
    store.close()
