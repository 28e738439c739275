"""Sizes the windows of a program's own sockets.

>>> import socket
>>> import sweetspot
>>> with socket.create_server(("127.0.0.1", 0)) as server:
...     with socket.create_connection(server.getsockname()) as connection:
...         with sweetspot.sized(connection) as live:
...             activity = live.report().activity
>>> activity
'idle'

On systems other than Linux, the library sizes nothing, and a ``RuntimeWarning`` says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from ._core import LiveSocket, SocketReport

__all__ = ["SizedSocket", "SocketReport", "size_pools", "sized"]


class HasDescriptor(Protocol):
    """A socket, or an ``ssl`` socket."""

    def fileno(self) -> int: ...


class SizedSocket:
    """Sizes the window of a socket until it is closed; a context manager. Closing it does not close the socket."""

    def __init__(
        self,
        connection: Any,
        *,
        sizing: str = "sobas:live",
        uploads: bool = True,
        unlock_buffers: bool = False,
        invite: bool = False,
        invitation: bytes | None = None,
    ) -> None:
        if invite and invitation is not None:
            raise ValueError("one end invites, and the other has the invitation; give one of the two")
        self._live: LiveSocket | None = None
        descriptor = _descriptor(connection)
        try:
            self._live = LiveSocket(
                descriptor, sizing, uploads, unlock_buffers, invite, invitation
            )
        except NotImplementedError as unsupported:
            warnings.warn(str(unsupported), RuntimeWarning, stacklevel=3)

    @property
    def invitation(self) -> bytes | None:
        """The 24-byte invitation for the peer, if this end invites; ``None`` if the library sizes nothing."""
        return self._live.made() if self._live else None

    def report(self) -> SocketReport | None:
        """The state of the socket at its last sample; ``None`` if it is closed, or if the library sizes nothing."""
        return self._live.report() if self._live else None

    def close(self) -> None:
        """Lifts every limit. A second call does nothing."""
        if self._live:
            self._live.close()

    def __enter__(self) -> SizedSocket:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def sized(
    connection: Any,
    *,
    sizing: str = "sobas:live",
    uploads: bool = True,
    unlock_buffers: bool = False,
    invite: bool = False,
    invitation: bytes | None = None,
) -> SizedSocket:
    """Starts sizing the window of a TCP connection.

    Args:
        connection: A socket, an asyncio transport or ``StreamWriter``, a connected ``http.client.HTTPConnection``, or
            a descriptor.
        sizing: ``sobas:live``, ``less-than-best-effort``, ``drs``, ``heffner``, ``heffner:twice``, ``fixed:SIZE`` such as
            ``fixed:300kB``, or ``kernel`` to watch only.
        uploads: Whether to pace sent data when a standing queue forms.
        unlock_buffers: Turn the kernel's autotuning back on if the program turned it off by setting ``SO_RCVBUF``.
        invite: Create an invitation, ``.invitation``, for a peer that sizes its end, too.
            Pass it on to the peer.
        invitation: The invitation from the peer.

    Raises:
        ValueError: The sizing is unknown, the invitation is invalid, or the connection has no socket.
        OSError: The socket is closed, already attached, or not a TCP connection.
    """
    return SizedSocket(
        connection,
        sizing=sizing,
        uploads=uploads,
        unlock_buffers=unlock_buffers,
        invite=invite,
        invitation=invitation,
    )


def _descriptor(connection: Any) -> int:
    if isinstance(connection, int):
        return connection
    if hasattr(connection, "get_extra_info"):  # asyncio
        connection = connection.get_extra_info("socket")
    elif hasattr(connection, "sock"):  # http.client, urllib3
        connection = connection.sock
    if connection is None:
        raise ValueError("expected a connection with a socket; connect it first")
    descriptor: int = connection.fileno()
    if descriptor < 0:
        raise OSError("the socket is closed")
    return descriptor


def size_pools(manager: Any, **options: Any) -> list[SizedSocket]:
    """Sizes every connection that a ``urllib3.PoolManager`` opens from now on; ``requests`` has one in each adapter:

    >>> import requests, sweetspot  # doctest: +SKIP
    >>> session = requests.Session()  # doctest: +SKIP
    >>> live = sweetspot.size_pools(session.get_adapter("http://").poolmanager)  # doctest: +SKIP

    Args:
        manager: The pool manager.
        options: As for :func:`sized`.

    Returns:
        A list that holds the sized sockets of open connections: each is added when it connects and removed when it closes.
    """
    live: list[SizedSocket] = []
    manager.pool_classes_by_scheme = {
        scheme: _sized_pool(pool, live, options)
        for scheme, pool in manager.pool_classes_by_scheme.items()
    }
    manager.clear()
    return live


def _sized_pool(pool: Any, live: list[SizedSocket], options: dict[str, Any]) -> Any:
    connection_class = pool.ConnectionCls

    def connect(self: Any) -> None:
        connection_class.connect(self)
        self._sized = sized(self, **options)
        live.append(self._sized)

    def close(self: Any) -> None:
        sized_socket = self.__dict__.pop("_sized", None)
        if sized_socket is not None:
            sized_socket.close()
            live.remove(sized_socket)
        connection_class.close(self)

    methods: dict[str, Callable[[Any], None]] = {"connect": connect, "close": close}
    connection = type("Sized" + connection_class.__name__, (connection_class,), methods)
    return type("Sized" + pool.__name__, (pool,), {"ConnectionCls": connection})
