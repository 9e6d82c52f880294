from __future__ import annotations

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Whether the server still holds the connection, which is asked once for each request.

        Between statements a server sends nothing but the end of the connection. Whatever has arrived,
        a statement decides.
        """
        connection = self.connection
        if connection is None or connection.closed:
            return False
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
        return not poll.poll(0) or super().is_usable()
