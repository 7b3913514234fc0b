"""Drawings and results of the pages, by session and fingerprint; each is read and verified once.

What is large a page stores once, under a fingerprint of the content, and its questions refer to it.
A reference that means nothing here, since the server has begun anew or had no room, is answered by
205 Reset Content: the page stores it again and repeats the question (`assets/server.js`).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ccl.result import Result
from ccl.serialization.topoloom import result_from_json, topology_from_json
from ccl.topology import Topology

MOST_STORED = 16
"""Drawings and results of one session: those of its open pages, and of their last steps."""

MOST_BYTES = 128 * 2**20
"""Of JSON that the sessions store together."""

REFERENCES = {"$topology": "topology", "$result": "result"}
"""What a question can refer to, by the only key of the reference."""

T = TypeVar("T")


class NotStored(Exception):
    """A question refers to what is not stored, or not any more."""


class Stored(dict[str, Any]):
    """JSON that a page has stored, with all that was made of it."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self._lock = threading.Lock()
        self._made: dict[Callable[[Any], Any], Any] = {}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Go to another process as plain JSON."""
        return dict, (dict(self),)

    def made(self, function: Callable[[Any], T]) -> T:
        """Return what a function makes of it, which is called once."""
        with self._lock:
            if function not in self._made:
                self._made[function] = function(self)
            found: T = self._made[function]
            return found


def once(function: Callable[[Any], T], value: Mapping[str, Any]) -> T:
    """Return what a function makes of JSON; of what a page has stored it is made once."""
    return value.made(function) if isinstance(value, Stored) else function(value)


def topology_of(value: Mapping[str, Any]) -> Topology:
    """Read a topology.

    Raises
    ------
    CclError
        If it is malformed.
    """
    return once(topology_from_json, value)


def result_of(value: Mapping[str, Any]) -> Result:
    """Read a result, whose plan is verified and replayed.

    Raises
    ------
    CclError
        If it is malformed.
    """
    return once(result_from_json, value)


class Store:
    """What pages have stored, by session and fingerprint; what was used longest ago goes first.

    Parameters
    ----------
    each
        Entries of one session.
    most
        Bytes of all sessions.
    """

    def __init__(self, each: int = MOST_STORED, most: int = MOST_BYTES) -> None:
        self._each, self._most = each, most
        self._entries: OrderedDict[tuple[str, str, str], tuple[Stored, int]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: tuple[str, str, str], value: Mapping[str, Any], nbytes: int) -> Stored:
        """Store a value under its session, kind and fingerprint."""
        stored = Stored(value)
        with self._lock:
            self._entries[key] = stored, nbytes
            own = [each for each in self._entries if each[0] == key[0]]
            for each in own[: -self._each]:
                del self._entries[each]
            while sum(size for _, size in self._entries.values()) > self._most:
                self._entries.popitem(last=False)
        return stored

    def find(self, key: tuple[str, str, str]) -> Stored:
        """Return what is stored under a key.

        Raises
        ------
        NotStored
            If nothing is.
        """
        with self._lock:
            if key not in self._entries:
                raise NotStored
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def resolve(self, session: str, value: Any) -> Any:
        """Return a value of a question with what its reference stands for.

        Raises
        ------
        NotStored
            If that is not stored.
        """
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("topology"), dict):
            return {**value, "topology": self._resolve(session, value["topology"])}
        return self._resolve(session, value)

    def _resolve(self, session: str, value: dict[str, Any]) -> dict[str, Any]:
        key = next(iter(value)) if len(value) == 1 else ""
        name = value.get(key)
        if key not in REFERENCES or not isinstance(name, str):
            return value
        return self.find((session, REFERENCES[key], name))
