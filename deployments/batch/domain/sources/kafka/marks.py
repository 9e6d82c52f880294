"""The state of one partition that a consumer group stores beside its offset: a part of the program of queue
workers.

Kafka counts no deliveries and settles messages in order only. Both are in the metadata of the commit, which the
next worker of the partition reads.
"""

from __future__ import annotations

import json
from typing import Any

# Of Kafka's default for the metadata of a commit, 4096.
MARK_BYTES = 4000


class PartitionMark:
    """The settled messages of a partition. `offset` is the first message that is not settled; None means nothing
    was committed.

    Messages below `to` were sent `tries` times. Those below `seen` may have an answer. `done` are settled ones
    above `offset`.
    """

    def __init__(self, offset: Any, text: str = "") -> None:
        self.offset = offset
        self.tries, self.to, self.seen, self.done = 0, 0, 0, set[int]()
        # Sent and not settled.
        self.open: set[int] = set()
        try:
            found = json.loads(text or "{}")
            self.tries, self.to = int(found.get("tries", 0)), int(found.get("to", 0))
            self.seen = int(found.get("seen", 0))
            self.done = {int(self.offset or 0) + int(n) for n in found.get("done", [])}
        except (ValueError, TypeError, AttributeError):
            # Another program of the group wrote it.
            pass

    def deliveries(self, offset: int) -> int:
        """Return the number of deliveries of a message, including the next one."""
        if offset < self.to:
            return self.tries + 1
        return 2 if offset < self.seen else 1

    def send(self, offsets: list[int], tries: int) -> None:
        """Note that these messages are sent next, and nothing else of the partition is."""
        if self.offset is None:
            self.offset = offsets[0]
        self.open.update(offsets)
        self.tries, self.to = tries, offsets[-1] + 1
        self.seen = max(self.seen, self.to)

    def settle(self, offset: int) -> None:
        self.open.discard(offset)
        self.done.add(offset)

    def advance(self) -> None:
        """Advance to the lowest offset that is not settled. What was sent last had nothing before it that was not
        sent.
        """
        first = min(self.open, default=self.to)
        while first in self.done:
            first += 1
        self.offset = first
        self.done = {n for n in self.done if n > first}

    def text(self) -> str:
        if self.offset is not None and self.offset >= self.seen:
            return ""
        done = sorted(n - (self.offset or 0) for n in self.done)
        fields = {"tries": self.tries, "to": self.to, "seen": self.seen, "done": done}
        text = json.dumps(fields, separators=(",", ":"))
        return text if len(text) <= MARK_BYTES else json.dumps({**fields, "done": []})
