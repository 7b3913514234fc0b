"""Hostile requests for `tests.robust.fuzz_server`: one page's session, and what is made of it."""

from __future__ import annotations

import base64
import contextlib
import copy
import http.client
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ccl.serialization.topoloom import topology_to_json
from gallery import open_cluster
from interchange.formats.catalogue import readers
from tests.robust.fuzz import broken, good_files
from tests.robust.hostile_files import hostile_documents
from tests.robust.visitor import HERE, Visitor

ASK = "/_dash-update-component"
Json = dict[str, Any]
Ask = tuple[str, str, Callable[[], "Answer"]]

NUMBERS = (0, -1, 1, 1e308, -1e308, 5e-324, 2**53, 2**63, -(2**63), 0.5, 1e18, 99_999_999)
WORDS = (
    "", " ", "\x00", "a" * 5000, "\u202e\U0001f600", "../../etc/passwd", "/etc/passwd", "%s%n",
    "NaN",
    "<script>alert(1)</script>", "'; drop table x", "{}", "[]", "1e999", "-1", "0x10", "\ud800",
    "1e999999999", "9" * 5000, "a" * 1_000_000, "[" * 100_000, "\u0661", "1e-999999999",
    "file:///etc/passwd", "http://169.254.169.254/", "__class__", "gpu0", "te-ccl-milp", "auto",
)  # fmt: skip
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [None], {"": None}, [[]], {"key": "x"})
RAW_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "-" + "9" * 30, "1" * 5000)

PATHS = (
    "/../../../../etc/passwd", "/assets/../app.py", "/assets/%2e%2e/app.py", "/assets/..%2fapp.py",
    "/assets/%252e%252e/app.py", "/assets//etc/passwd", "/assets/%00",
    "/assets/designer.css%00.png",
    "/assets/..\\app.py", "/assets/..%5capp.py", "//etc/passwd", "/%2e%2e%2f%2e%2e%2fetc/passwd",
    "/_dash-component-suites/dash/../../../etc/passwd", "/_dash-component-suites/os/path",
    "/_dash-component-suites/dash/%2e%2e/%2e%2e/pyproject.toml", "/_dash-component-suites/dash/",
    "/_dash-component-suites/designer/app.py", "/_dash-component-suites/widgets/static/../dash.py",
    "/_dash-component-suites/sys/x", "/_dash-component-suites/dash.py/dash.py", "/static/x",
    "/_reload-hash", "/_alive_x", "/.git/config", "/.env", "/console", "/assets/fonts",
    "/assets/icons/../../cli/design.py", "http://evil.example/", "/" + "a" * 4000, "/\u202e", "*",
    "/?" + "a=1&" * 500, "/assets/designer.css?m=../../x", "/_dash-layout/../x", "/alive/x",
    "/%ff%fe",
)  # fmt: skip

HOSTS = (
    "evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:80", "localhost.evil.example:{port}",
    "127.0.0.1.evil.example:{port}", "evil.example:{port}", "[::1", "[::ffff:127.0.0.1]:{port}",
    "0.0.0.0:{port}", "127.1:{port}", "2130706433:{port}", "127.0.0.1:{port}, evil.example",
    "127.0.0.1:{port}@evil.example", "", " ", "\x7f", "a" * 3000, "user@127.0.0.1:{port}",
    "127.0.0.1:{port}.evil.example", "xn--a:{port}", "127.0.0.1:99999999999", "é:{port}",
)  # fmt: skip

FIELDS = (
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://127.0.0.1:{port}.evil.example"}, {"Origin": "https://["}, {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "x"},
    {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "multipart/form-data; boundary=x"}, {"Content-Type": ""},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
)  # fmt: skip

BROKEN = (
    b"\x00", b"\r\n\r\n", b"GET", b"GET /\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
    b"get / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {h}\r\nHost: evil.example\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/1.1\nHost: {h}\n\n", b"GET / HTTP/1.1\r\nHost {h}\r\n\r\n",
    b"GET  / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {h}\r\n x\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT evil.example:443 HTTP/1.1\r\nHost: {h}\r\n\r\n",
    b"TRACE / HTTP/1.1\r\nHost: {h}\r\n\r\n", b"DELETE / HTTP/1.1\r\nHost: {h}\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: {h}\r\n\r\n", b"PUT / HTTP/1.1\r\nHost: {h}\r\n\r\n",
    b"HEAD / HTTP/1.0\r\nHost: {h}\r\n\r\n", b"GET / HTTP/1.1\r\nHost: {h}\r\nX: " + b"a" * 40_000,
    b"GET / HTTP/1.1\r\nHost: {h}\r\nCookie: topoloom-{p}=../../x\r\n\r\n",
    b"GET /_dash-layout HTTP/1.0\r\nHost: {h}\r\nCookie: " + b"a=b;" * 3000 + b"\r\n\r\n",
    b"GET / HTTP/1.0\r\nHost: {h}\r\nIf-None-Match: " + b'"' * 100 + b"\r\n\r\n",
    b"GET /assets/designer.css HTTP/1.0\r\nHost: {h}\r\nRange: bytes=-1-99999999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {h}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
)  # fmt: skip

LENGTHS = (
    b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Length: 1e3",
    b"Content-Length: 67108865", b"Content-Length: 999999999",
    b"Content-Length: 3\r\nContent-Length: 9",
    b"Content-Length: +5", b"Content-Length: 0x10", b"Content-Length: ", b"Content-Length: 2, 2",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked, x",
    b"Transfer-Encoding: chunked\r\nContent-Length: 2",
    b"Expect: 100-continue\r\nContent-Length: 2",
)  # fmt: skip
BODIES = (b"{}", b"", b"zz\r\n", b"5\r\n{}\r\n", b"-1\r\n", b"ffffffffffffffff\r\n", b"0\r\n\r\n")


HOSTILE = tuple(hostile_documents().values())

GIVEN = (
    "canvas.drawing",
    "canvas.selection",
    "request.data",
    "problem-request.data",
    "live-question.data",
    "options.data",
    "sketches.data",
    "formulation.value",
    "link-type.value",
    "view.value",
    "compare-methods.value",
    "compare-seconds.value",
    "compare-sizes.value",
    "gallery-search.value",
    "export-search.value",
    "job.data",
    "compare-job.data",
)
"""What of a page is its user's; all else the server has put there."""


NUMBERED = ("best-cut", "bound", "limit-drop", "limit-edit", "tree-turn", "whatif-cut")
"""Patterns whose components are counted and not named."""


@dataclass(frozen=True)
class Answer:
    """An answer: its status, 0 where there is none, and all of its bytes."""

    status: int
    content: bytes = b""

    @property
    def short(self) -> str:
        """For counting."""
        return str(self.status) if self.status else "closed"


class Page:
    """A page's session with a server, and the values that its components have."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.visitor = Visitor(port)
        self.values: Json = {}
        self.callbacks: list[Json] = []

    def open(self, seconds: float = 90.0) -> None:
        """Load the page as soon as the server is there, and get a result for it to hold."""
        until = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError):
                self.visitor.open()
                break
            if time.monotonic() > until:
                raise TimeoutError("the server does not come")
            time.sleep(0.2)
        listed = json.loads(self.visitor.ask("GET", "/_dash-dependencies"))
        self.callbacks = [each for each in listed if not each["clientside_function"]]
        topology = topology_to_json(open_cluster("ring:gpus=4"))
        request = {
            "collective": "all-gather", "size": "1MB", "chunks": 1, "root": 0,
            "formulation": "list",
            "options": {}, "time_limit": 2, "gap": None, "custom": None,
        }  # fmt: skip
        places = {each["name"]: [10.0 * i, 0.0] for i, each in enumerate(topology["devices"])}
        asked = {"topology": topology, "request": request}
        self.values = {
            "canvas.drawing": {"topology": topology, "positions": places},
            "canvas.selection": {"devices": ["gpu0"], "links": [], "hosts": []},
            "request.data": request,
            "problem-request.data": asked,
            "live-question.data": {**asked, "page": "fuzz", "n": 1},
            "options.data": {}, "sketches.data": {}, "cut-shown.data": "auto", "layer.data": "",
            "file-read.data": {"name": "x", "contents": "", "settings": {}, "act": "read"},
            "formulation.value": "list", "view.value": "canvas", "link-type.value": "nvlink3",
            "sorting.data": {w: {"key": "", "down": False, "page": 1} for w in ("device", "link")},
            "about-asked.data": {"name": "list", "n": 1},
            "tree-number.data": 0, "compare-methods.value": ["ring"], "compare-seconds.value": 1,
            "compare-sizes.value": "1MB",
        }  # fmt: skip
        key = self.visitor.solve(topology, request)
        if key is not None:
            self._hold(self.visitor.watch(key))
            self.values["job.data"] = {"key": key, "found": 0}
        told = self.visitor.call("problem-request.data", self.values, writes="assessment")
        self._hold(told)
        self._hold(self.visitor.call("live-question.data", self.values))

    def _hold(self, told: Json) -> None:
        self.values |= {
            f"{name}.{what}": v for name, has in told.items() for what, v in has.items()
        }

    def question(self, callback: Json) -> Json:
        """Return the question of a callback as the page would ask it."""
        parts = {part: [self._row(each) for each in callback[part]] for part in ("inputs", "state")}
        outputs = callback["output"]
        several = outputs.startswith("..")
        names = outputs.strip(".").split("...") if several else [outputs]
        rows = [
            {"id": _pattern(name), "property": what}
            for name, _, what in (n.rpartition(".") for n in names)
        ]
        first = parts["inputs"][0]
        first = (first or [{"id": {}, "property": ""}])[0] if isinstance(first, list) else first
        name = first["id"]
        told = (
            name
            if isinstance(name, str)
            else json.dumps(name, sort_keys=True, separators=(",", ":"))
        )
        return {
            "output": outputs,
            "outputs": rows if several else rows[0],
            "changedPropIds": [f"{told}.{first['property']}"],
            **parts,
        }

    def _row(self, wanted: Json) -> Any:
        if not wanted["id"].startswith("{"):
            value = self.values.get(f"{wanted['id']}.{wanted['property']}")
            return {**wanted, "value": 1 if wanted["property"] == "n_clicks" else value}
        name = _pattern(wanted["id"])
        value = 1 if wanted["property"] == "n_clicks" else None
        return [{"id": name, "property": wanted["property"], "value": value}]

    def good(self) -> str:
        """Ask a good question; return what is wrong with the answer, or nothing."""
        try:
            found = self.visitor.followed(
                self.values["canvas.drawing"]["topology"], self.values["request.data"]
            )
        except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
            self.visitor.close()
            return f"{type(error).__name__}: {error}"
        return "" if found.get("algbw") else f"no best rate in {found}"

    def post(self, body: bytes, **fields: str) -> Answer:
        """Post a body as the page does, and stop what it has begun."""
        answer = self.send("POST", ASK, body, {"Content-Type": "application/json", **fields})
        if answer.status == 200 and b'"key"' in answer.content:
            self._stop(answer)
        return answer

    def send(self, method: str, path: str, body: bytes | None, fields: dict[str, str]) -> Answer:
        """Send a request by a client that lets headers be what they are."""
        line = http.client.HTTPConnection(HERE, self.port, timeout=60)
        cookies = "; ".join(f"{k}={v}" for k, v in self.visitor.cookies.items())
        given = {"Host": f"{HERE}:{self.port}", "Cookie": cookies, **fields}
        try:
            line.putrequest(method, "/", skip_host=True, skip_accept_encoding=True)
            # http.client refuses paths that a hostile client sends all the same.
            line._buffer[0] = f"{method} {path} HTTP/1.1".encode()
            for name, value in given.items():
                line._buffer.append(f"{name}: {value}".encode())
            line.putheader("Content-Length", str(len(body or b"")))
            line.endheaders(body)
            found = line.getresponse()
            return Answer(found.status, found.read())
        except (ConnectionError, http.client.HTTPException):
            return Answer(0)
        finally:
            line.close()

    def raw(self, content: bytes, *, patience: float = 2.0) -> Answer:
        """Send bytes and read what comes until the server closes or says no more."""
        found = b""
        with contextlib.suppress(OSError), socket.create_connection((HERE, self.port), 10) as line:
            line.sendall(content)
            line.settimeout(patience)
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_WR)
            while more := line.recv(65536):
                found += more
        status = found[9:12]
        return Answer(int(status) if found.startswith(b"HTTP/1") and status.isdigit() else 0, found)

    def _stop(self, answer: Answer) -> None:
        """Cancel the solve or comparison that was begun."""
        with contextlib.suppress(Exception):
            told = json.loads(answer.content).get("response", {})
            if (job := told.get("job", {}).get("data")) and job.get("key"):
                self.stop_solve(job["key"])
            if (job := told.get("compare-job", {}).get("data")) and job.get("key"):
                rows = {"compare-stop.n_clicks": 1, "compare-job.data": job}
                Visitor.call(self._fresh(), "compare-stop.n_clicks", rows, writes="compare-stop")

    def stop_solve(self, key: str) -> None:
        """Cancel a solve from a connection of its own."""
        self._fresh().cancel(key)

    def _fresh(self) -> Visitor:
        other = Visitor(self.port)
        other.cookies = self.visitor.cookies
        other._callbacks = self.visitor._callbacks
        return other


def _pattern(name: str) -> Any:
    """Return an id as the page writes it: one of those that a pattern matches."""
    if not name.startswith("{"):
        return name
    return {
        k: (0 if k in NUMBERED else "gpu0") if isinstance(v, list) else v
        for k, v in json.loads(name).items()
    }


class Told:
    """An endless run of hostile requests to a page's server."""

    def __init__(self, page: Page, chance: random.Random) -> None:
        self.page, self.chance = page, chance
        self.good = {each.name: good_files(each.name) or [b""] for each in readers()}
        self.every = [content for listed in self.good.values() for content in listed]
        asked = {**page.values, "copy-link.n_clicks": 1}
        found = page.visitor.call("copy-link.n_clicks", asked, writes="link-text")
        self.link = found["link-text"]["data"]["fragment"]
        self.requests = self._requests()

    def _requests(self) -> Iterator[Ask]:
        makers = (
            (self._raw, 6), (self._path, 8), (self._host, 6), (self._length, 6), (self._json, 8),
            (self._shape, 22), (self._value, 34), (self._file, 8), (self._slow, 1), (self._link, 1),
        )  # fmt: skip
        each, weights = [maker for maker, _ in makers], [weight for _, weight in makers]
        while True:
            yield self.chance.choices(each, weights)[0]()

    def _raw(self) -> Ask:
        host = f"{HERE}:{self.page.port}".encode()
        content = self.chance.choice(BROKEN).replace(b"{h}", host)
        content = content.replace(b"{p}", str(self.page.port).encode())
        for _ in range(self.chance.choice((0, 1, 4))):
            at = self.chance.randrange(len(content) + 1)
            content = content[:at] + bytes([self.chance.randrange(256)]) + content[at + 1 :]
        return "broken HTTP", repr(content[:80]), lambda: self.page.raw(content)

    def _path(self) -> Ask:
        path = self.chance.choice(PATHS)
        method = self.chance.choice(("GET", "GET", "GET", "HEAD", "POST", "PUT", "OPTIONS"))
        return "paths", f"{method} {path[:80]}", lambda: self.page.send(method, path, None, {})

    def _host(self) -> Ask:
        port = str(self.page.port)
        if self.chance.random() < 0.5:
            host = self.chance.choice(HOSTS).replace("{port}", port)
            return (
                "names",
                host[:80],
                lambda: self.page.send("GET", "/_dash-layout", None, {"Host": host}),
            )
        fields = {k: v.replace("{port}", port) for k, v in self.chance.choice(FIELDS).items()}
        body = json.dumps(self.page.question(self.chance.choice(self.page.callbacks))).encode()
        return "names", str(fields), lambda: self.page.post(body, **fields)

    def _length(self) -> Ask:
        host = f"Host: {HERE}:{self.page.port}\r\nContent-Type: application/json\r\n".encode()
        told, body = self.chance.choice(LENGTHS), self.chance.choice(BODIES)
        method = self.chance.choice((b"POST " + ASK.encode(), b"GET /"))
        content = method + b" HTTP/1.1\r\n" + host + told + b"\r\n\r\n" + body
        return "lengths", repr(told), lambda: self.page.raw(content, patience=0.5)

    def _slow(self) -> Ask:
        content = (
            f"POST {ASK} HTTP/1.1\r\nHost: {HERE}:{self.page.port}\r\nContent-Length: 5\r\n\r\n{{"
        )

        def ask() -> Answer:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((HERE, self.page.port), 5) as line,
            ):
                for byte in content.encode():
                    line.sendall(bytes([byte]))
            return Answer(0)

        return "slow bodies", "a byte at a time", ask

    def _json(self) -> Ask:
        good = json.dumps(self.page.question(self.chance.choice(self.page.callbacks))).encode()
        deep = self.chance.choice((50, 70, 1000, 100_000))
        number = self.chance.choice(RAW_NUMBERS).encode()
        ways = (
            broken(good, [good], self.chance),
            broken(good, [good], self.chance),
            b"[" * deep + b"]" * deep,
            b'{"a":' * deep + b"1" + b"}" * deep,
            b"[" * deep,
            good.replace(b"null", number),
            good.replace(b"1", number, 1),
            good.decode().encode("utf-16"),
            b"\xef\xbb\xbf" + good,
            b"\xff" * 100,
            b'"',
            good * 2,
        )
        body = self.chance.choice(ways)
        return "bad JSON", repr(body[:120]), lambda: self.page.post(body)

    def _shape(self) -> Ask:
        """Change anything of a question, its names and form too."""
        question = copy.deepcopy(self.page.question(self.chance.choice(self.page.callbacks)))
        for _ in range(self.chance.choice((1, 1, 2, 5))):
            self._change(question)
        return self._asked("shapes", question)

    def _value(self) -> Ask:
        """Change what a user gives a question, or what the server itself put on the page."""
        question = copy.deepcopy(self.page.question(self.chance.choice(self.page.callbacks)))
        rows = [row for part in ("inputs", "state") for row in question[part]]
        rows = [one for row in rows for one in (row if isinstance(row, list) else [row])]
        given = [row for row in rows if f"{row['id']}.{row['property']}" in GIVEN]
        kind = "values" if given and self.chance.random() < 0.8 else "forged values"
        for _ in range(self.chance.choice((1, 1, 2, 4))):
            row = self.chance.choice(given if kind == "values" else rows)
            if isinstance(row.get("value"), dict | list) and self.chance.random() < 0.8:
                self._change(row["value"])
            else:
                row["value"] = self._thing()
        return self._asked(kind, question)

    def _asked(self, kind: str, question: Json) -> Ask:
        body = json.dumps(question).encode()
        what = f"{str(question.get('output'))[:60]} {body[-160:]!r}"
        return kind, what, lambda: self.page.post(body)

    def _file(self) -> Ask:
        name = self.chance.choice(list(self.good))
        content = broken(self.chance.choice(self.good[name]), self.every, self.chance)
        if self.chance.random() < 0.2:
            content = self.chance.choice(HOSTILE)
        callback = next(each for each in self.page.callbacks if _asks(each, "file-read"))
        question = self.page.question(callback)
        told = "data:;base64," + base64.b64encode(content).decode()
        file = {"name": self.chance.choice(("x", *WORDS[:6])), "contents": told, "settings": {},
                "act": self.chance.choice(("read", "take", "add"))}  # fmt: skip
        question["inputs"][0]["value"] = file
        ask = self._asked("files", question)
        return ask[0], f"{name} {content[:100]!r}", ask[2]

    def _link(self) -> Ask:
        callback = next(each for each in self.page.callbacks if _asks(each, "linked"))
        question = self.page.question(callback)
        fragment = broken(self.link.encode(), [self.link.encode()], self.chance).decode("latin-1")
        question["inputs"][0]["value"] = {"fragment": fragment, "n": 1}
        return self._asked("links", question)

    def _change(self, value: Any) -> None:
        """Change one place somewhere below."""
        while True:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            if not keys:
                return
            key = self.chance.choice(keys)
            if isinstance(value[key], dict | list) and value[key] and self.chance.random() < 0.75:
                value = value[key]
                continue
            break
        way = self.chance.random()
        if way < 0.15:
            del value[key]
        elif way < 0.25 and isinstance(value, list):
            value.insert(key, copy.deepcopy(value[key]))
        elif way < 0.3 and isinstance(value, dict):
            value[self.chance.choice(WORDS)] = self._thing()
        else:
            value[key] = self._thing()

    def _thing(self) -> Any:
        some: Any = self.chance.choice((NUMBERS, WORDS, WORDS, OTHERS))
        return copy.deepcopy(self.chance.choice(some))


def _asks(callback: Json, name: str) -> bool:
    return any(each["id"] == name for each in callback["inputs"])
