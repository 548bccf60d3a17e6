"""The one connection to a provider: watched, so that it can be cut when its time is over."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pricing.web.manners import Manners


class Line:
    """
    The connection, the manners towards its host, and the means to cut it.

    Args:
        manners: Of the provider.
    """

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self._network: Any = None
        self._watch: Watch | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep hold of the connection in use; called by the library of HTTP."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._network = info["return_value"]
            if self._watch is not None and self._watch.has_cut:  # the deadline struck while connecting
                self._cut()

    @contextmanager
    def watched(self, seconds: float) -> Iterator["Watch"]:
        """Cut the connection after so long, however busily it drips: a single read alone is bounded."""
        watch = self._watch = Watch(self._cut)
        timer = threading.Timer(max(0.0, seconds), watch.cut)
        timer.daemon = True
        timer.start()
        try:
            yield watch
        finally:
            timer.cancel()

    def _cut(self) -> None:
        network = self._network
        connection = network.get_extra_info("socket") if network is not None else None
        if connection is not None:
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)  # wakes a waiting read, which closing would not


class Watch:
    """Whether the deadline struck while a request was under way."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self.has_cut = False
        self._cut = cut

    def cut(self) -> None:
        """Note that it struck, and cut."""
        self.has_cut = True
        self._cut()
