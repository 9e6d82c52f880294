"""Init containers: `storage-initializer` downloads models, `digest-check` compares them with their record.

On a claim the download fills a shared directory once. The last one then prepares them for the local Triton, which changes the files.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from time import monotonic

from slipway_localcluster.controllers import digest_check, model_repository, model_volume, storage
from slipway_localcluster.controllers.container_states import ContainerState, backoff_seconds
from slipway_localcluster.controllers.volumes import Volumes
from slipway_localcluster.errors import JsonObject

NAME = "storage-initializer"
_HUB = "hf://"


class Initializer:
    """Runs in a worker thread; fails and restarts as a container would."""

    def __init__(
        self,
        container: JsonObject,
        volumes: Volumes,
        directory: Path,
        workers: Executor,
        *,
        is_last: bool,
        needs_weights: bool = True,
        runs_once: bool = False,
    ) -> None:
        self.state = ContainerState(container["name"], container.get("image", ""))
        self._container = container
        self._volumes = volumes
        self._log = directory / f"{container['name']}.log"
        self._done = directory / f"{container['name']}.done"
        # Compared only once, because `model_repository.prepare` changes the files.
        self._compared = directory / f"{container['name']}.compared"
        self._is_last = is_last
        self._needs_weights = needs_weights
        self._runs_once = runs_once
        self._workers = workers
        self._running: Future[str] | None = None
        self._starts_at = 0.0
        self.state.wait("PodInitializing")

    @property
    def is_done(self) -> bool:
        return (self.state.state.get("terminated") or {}).get("exitCode") == 0

    def step(self, read_settings: Callable[[], storage.S3Settings]) -> None:
        if self.is_done or (self._runs_once and "terminated" in self.state.state):
            return
        if self._running is not None:
            if self._running.done():
                self._finish(self._running)
                self._running = None
        elif self._done.exists():
            self.state.end(0)
        else:
            self._start_if_due(read_settings)

    def stop(self) -> None:
        """Wait for a running download: its directory is about to be removed."""
        if self._running is not None and not self._running.cancel():
            self._running.exception()

    def _start_if_due(self, read_settings: Callable[[], storage.S3Settings]) -> None:
        is_check = self._container["name"] == digest_check.NAME
        if not is_check and not _is_storage_initializer(self._container):
            self.state.wait(
                "ErrImagePull",
                "the local cluster runs no init containers other than storage-initializer and "
                "digest-check",
            )
            return
        if monotonic() < self._starts_at:
            return
        if "terminated" in self.state.state or self.state.last_state:
            self.state.restarts += 1
        self.state.run()
        if is_check:
            self._running = self._workers.submit(self._compare)
        else:
            self._running = self._workers.submit(self._fetch, read_settings())

    def _compare(self) -> str:
        self._log.write_text("")
        environment = self._environment()
        path = environment.get(digest_check.DIRECTORY, "")
        target = self._volumes.resolve(self._container, path)
        if target is None:
            raise digest_check.FilesDiffer(f"{path} is not inside a volume of the init container")
        if not self._compared.exists():
            digest_check.compare(target, environment.get(digest_check.RECORD, ""))
            self._compared.touch()
        self._complete(target)
        return "All files are as recorded"

    def _fetch(self, settings: storage.S3Settings) -> str:
        """The model repository is the common parent of all targets, or the only target."""
        arguments = [str(item) for item in self._container.get("args") or ()]
        if not arguments or len(arguments) % 2:
            raise storage.StorageFailed("storage-initializer needs pairs: source, target")
        self._log.write_text("")
        if model_volume.COPY in self._environment():
            return self._fill_volume(arguments, settings)
        count, targets = 0, []
        for uri, path in zip(arguments[::2], arguments[1::2], strict=True):
            target = self._volumes.resolve(self._container, path)
            if target is None:
                raise storage.StorageFailed(f"{path} is not inside a volume of the init container")
            targets.append(target)
            count += self._download(uri, target, settings)
        self._complete(Path(os.path.commonpath(targets)))
        return f"Successfully copied {count} objects"

    def _download(self, uri: str, target: Path, settings: storage.S3Settings) -> int:
        if uri.startswith(_HUB) and not self._needs_weights:
            target.mkdir(parents=True, exist_ok=True)
            self._write(f"{uri} is not downloaded: the local language server needs no weights")
            return 0
        self._write(f"Downloading {uri}")
        return storage.download(uri, target, settings)

    def _fill_volume(self, arguments: Sequence[str], settings: storage.S3Settings) -> str:
        environment = self._environment()
        path = environment.get(model_volume.VOLUME, "")
        claim = self._volumes.claim_at(self._container, path)
        if claim is None:
            raise storage.StorageFailed(f"no claim is mounted at {path}")
        shared, own = claim
        copy, message = model_volume.fill(
            shared,
            environment,
            arguments,
            lambda uri, target: self._download(uri, target, settings),
        )
        shutil.copytree(copy, own / copy.name, dirs_exist_ok=True)
        self._complete(own / copy.name)
        return message

    def _environment(self) -> dict[str, str]:
        return {
            item["name"]: str(item.get("value") or "") for item in self._container.get("env") or ()
        }

    def _complete(self, repository: Path) -> None:
        if self._is_last:
            model_repository.prepare(repository)
        self._done.touch()

    def _finish(self, running: Future[str]) -> None:
        try:
            message = running.result()
        except (storage.StorageFailed, digest_check.FilesDiffer, OSError) as error:
            self._write(str(error))
            self.state.end(1, str(error))
            if self._runs_once:
                return
            delay = backoff_seconds(self.state.restarts)
            self._starts_at = monotonic() + delay
            if delay:
                self.state.wait(
                    "CrashLoopBackOff",
                    f"back-off {delay}s restarting failed container={self.state.name}",
                )
            return
        self._write(message)
        self.state.end(0)

    def _write(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{line}\n")


def _is_storage_initializer(container: JsonObject) -> bool:
    return container["name"] == NAME or NAME in str(container.get("image", ""))
