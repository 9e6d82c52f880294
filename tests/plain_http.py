"""One HTTP client for the servers that tests start on this machine; none of them speaks TLS.

`httpx.get` would read the bundle of certificate authorities for each request: 20 ms of processor
time, a thousand times while a test waits for a server.
"""

from __future__ import annotations

import httpx

# A kept connection would fail once its server was killed on purpose.
client = httpx.Client(verify=False, timeout=120, limits=httpx.Limits(max_keepalive_connections=0))
