"""NetBox: device types, devices and cables of a data centre's inventory.

Read: one JSON object with ``devices`` and ``cables``, and ``device_types`` and ``interfaces`` where
they are known, each a list or the answer of NetBox's REST API (``{"results": [...]}``); or the CSV
of cables that its bulk import takes. Written: that JSON with what NetBox's bulk import takes beside
it, a file for each kind of objects, to be imported in the order of their names.

A NetBox device is a box of ours (`ccl.cabling`): a host, a switch, a GPU that is alone. What is
inside a host NetBox does not say: its GPUs are inventory items of its type whose part is GPU, and
they are joined by a switch when they are read.

Sources: netbox-community/netbox, dcim/forms/bulk_import.py, for the fields of device types, devices
and cables, and dcim/choices.py for types; issues 2543, 5245 and 10319 there on what it exports.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from ccl.cabling import Cabling, End, cabling_of
from ccl.errors import FormatError
from ccl.serialization.documents import Document, document
from ccl.serialization.text import csv_text
from ccl.text import count
from ccl.topology import Device, Link, Topology, device, duplex
from interchange.formats.fields import (
    bandwidth,
    head_of,
    lost_details,
    number,
    select_sentences,
    short,
    text_in,
    whole,
)
from interchange.formats.format import Imported, Question, Reader, Remarks, Request, Writer, Written
from interchange.formats.graphs._graph import lost_of

CABLE_FIELDS = (
    *("side_a_device", "side_a_type", "side_a_name"),
    *("side_b_device", "side_b_type", "side_b_name"),
    *("type", "status", "label", "length", "length_unit"),
)
"""Columns of the bulk import of cables."""

INTERFACE = "dcim.interface"
MOST_BYTES = 256 * 2**20
MOST_GPUS = 131_072
MOST_INSIDE = 1024
"""GPUs of a device."""
LONGEST_NAME = 64
"""Signs of a name of NetBox."""

_PORTS = (
    (12.5, "100gbase-x-qsfp28"),
    (25.0, "200gbase-x-qsfp56"),
    (50.0, "400gbase-x-osfp"),
    (100.0, "800gbase-x-osfp"),
)
"""GB/s and the type of interface that is written for it."""
_ETHERNET = re.compile(r"(\d{1,4})gbase")
_INFINIBAND = {"edr": 12.5, "hdr": 25.0, "ndr": 50.0, "xdr": 100.0}
_SWITCH = re.compile(r"switch|leaf|spine|core|router|aggregation|fabric|tor\b", re.IGNORECASE)
_SWITCH_NAME = re.compile(
    r"(switch|sw|leaf|spine|core|agg|edge|rail|tor|router)[\W_\d]", re.IGNORECASE
)
_ASKED = {"8": "eight GPUs in each", "4": "four GPUs in each", "1": "each is a GPU"}


def cable_csv(rows: Iterable[tuple[str, End, End, str, float | None]]) -> str:
    """Return the CSV that NetBox's bulk import of cables takes.

    Parameters
    ----------
    rows
        Label, both ends, NetBox's type of the cable or nothing, and metres or None.
    """
    cells = (tuple(_cable(*row).values()) for row in rows)
    return csv_text([CABLE_FIELDS, *cells])


def _cable(
    label: str, first: End, second: End, kind: str = "", length: float | None = None
) -> dict[str, Any]:
    ends = (first.box, INTERFACE, first.port, second.box, INTERFACE, second.port)
    known = ("", "") if length is None else (round(length, 2), "m")
    return dict(zip(CABLE_FIELDS, (*ends, kind, "planned", label, *known), strict=True))


# Written


def write(content: Document) -> Written:
    """Write boxes as devices with a type for those that are alike, and their cables."""
    topology = content.topology
    cabling = cabling_of(topology)
    for box in cabling.boxes:
        if len(box) > LONGEST_NAME or box != box.strip():
            raise FormatError(
                f"the box {short(box)} has {len(box)} signs; NetBox takes names of "
                f"{LONGEST_NAME} at most that neither begin nor end with a space; rename it"
            )
    types, devices = _typed(topology, cabling)
    cables = [
        _cable(f"C{number:05d}", each.first, each.second)
        for number, each in enumerate(cabling.cables, start=1)
    ]
    roles = [{"name": name, "slug": name, "color": "9e9e9e"} for name in ("gpu", "host", "switch")]
    everything = {"device_types": types, "devices": devices, "cables": cables}
    files = {
        "netbox.json": json.dumps(everything, ensure_ascii=False, indent=1),
        "1-manufacturers.csv": _table([{"name": _MAKER, "slug": "drawn"}]),
        "2-device-types.yaml": yaml.safe_dump_all(types, sort_keys=False, allow_unicode=True),
        "3-device-roles.csv": _table(roles),
        "4-sites.csv": _table([{"name": _SITE, "slug": "drawn", "status": "planned"}]),
        "5-devices.csv": _table(devices),
        "6-cables.csv": csv_text([CABLE_FIELDS, *(row.values() for row in cables)]),
    }
    return Written({name: text.encode() for name, text in files.items()}, _lost(content, cabling))


_MAKER, _SITE = "Drawn", "Drawn"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    return csv_text([rows[0].keys(), *(row.values() for row in rows)] if rows else [])


def _typed(
    topology: Topology, cabling: Cabling
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a device type for boxes that are alike, and the devices."""
    ports: dict[str, list[tuple[str, str]]] = {box: [] for box in cabling.boxes}
    for each in cabling.cables:
        kind = next((name for rate, name in _PORTS if rate >= each.bandwidth * 0.999999), _FASTEST)
        for end in (each.first, each.second):
            ports[end.box].append((end.port, kind))
    types: dict[tuple[str, int, tuple[tuple[str, str], ...]], dict[str, Any]] = {}
    devices = []
    for box, names in cabling.boxes.items():
        gpus = sum(name in topology.rank for name in names)
        role = "switch" if not gpus else "gpu" if names == (box,) else "host"
        if not gpus and not all(topology.device(name).kind == "switch" for name in names):
            raise FormatError(f"{box} has no GPU and is no switch; give it a GPU or take it away")
        key = role, gpus, tuple(ports[box])
        if key not in types:
            types[key] = _type(*key, number=len(types) + 1)
        devices.append(
            {
                "name": box,
                "role": role,
                "manufacturer": _MAKER,
                "device_type": types[key]["model"],
                "status": "planned",
                "site": _SITE,
            }
        )
    return list(types.values()), devices


_FASTEST = _PORTS[-1][1]


def _type(
    role: str, gpus: int, ports: tuple[tuple[str, str], ...], *, number: int
) -> dict[str, Any]:
    inside = f"{count(gpus, 'GPU')}, " if gpus else ""
    made: dict[str, Any] = {
        "manufacturer": _MAKER,
        "model": f"{role} {number}: {inside}{count(len(ports), 'port')}",
        "slug": f"drawn-{role}-{number}",
        "interfaces": [{"name": port, "type": kind} for port, kind in ports],
    }
    if gpus:
        items = [{"name": f"gpu{i}", "part_id": "GPU"} for i in range(gpus)]
        made["inventory-items"] = items
    return made


def _lost(content: Document, cabling: Cabling) -> tuple[str, ...]:
    inner = sum(len(names) > 1 for names in cabling.boxes.values())
    known = [rate for rate, _ in _PORTS]
    odd = sum(
        all(abs(each.bandwidth / rate - 1) > 1e-6 for rate in known) for each in cabling.cables
    )
    return (
        *lost_details(content.topology),
        *select_sentences(
            (any(each.alpha for each in content.topology.links), "latencies"),
            (inner, f"the links inside {count(inner, 'host')}"),
            (cabling.backplanes, "links through a backplane"),
            (odd, f"the bandwidth of {count(odd, 'cable')}, which is the next type's"),
            (content.positions, "where it is drawn"),
            (True, "names of GPUs in hosts, and which of two directions is wider"),
        ),
        *lost_of(content),
    )


# Read


def recognises(content: bytes) -> bool:
    """Say whether it is a JSON object with cables and devices, or a CSV of cables."""
    if not content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        head = content[:4096].partition(b"\n")[0]
        return b"side_a_device" in head and b"side_b_name" in head
    if b'"cables"' not in content or b'"devices"' not in content:
        return False
    found = head_of(content, dict[str, Any])
    return found is not None and {"cables", "devices"} <= found.keys()


@dataclass
class _Box:
    """A device that is read.

    Parameters
    ----------
    gpus
        None of a switch.
    ports
        Types of interfaces by name.
    used
        Place of each interface with a cable among those, by name.
    """

    gpus: int = 0
    ports: dict[str, str] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Plug:
    device: str
    port: str


def read(content: bytes, request: Request) -> Imported:
    """Read an inventory; errors as of `Reader.parse`."""
    remarks = Remarks()
    text = text_in(content, most=MOST_BYTES)
    if text.lstrip().startswith("{"):
        boxes, cables = _of_json(text, request, remarks)
    else:
        boxes, cables = _of_csv(text, request, remarks)
    if sum(box.gpus for box in boxes.values()) > MOST_GPUS:
        raise FormatError(f"it has more than {MOST_GPUS:,} GPUs, which is the most that is read")
    topology = _topology(boxes, cables, request, remarks)
    what = f"{count(len(topology.ranks), 'GPU')}, {count(len(boxes), 'device')}"
    remarks.taken.insert(0, f"{what} and {count(len(cables), 'cable')}")
    return Imported(document(topology), remarks.report())


def _of_json(
    text: str, request: Request, remarks: Remarks
) -> tuple[dict[str, _Box], list[tuple[_Plug, _Plug]]]:
    found = head_of(text, dict[str, Any])
    if found is None or not {"devices", "cables"} <= found.keys():
        raise FormatError("it is no JSON object with devices and cables; give one with both")
    types = {_name_of(each.get("model")): each for each in _rows(found, "device_types")}
    boxes: dict[str, _Box] = {}
    unknown = []
    for row in _rows(found, "devices"):
        name = _name_of(row.get("name"))
        if not name or name in boxes:
            what = "twice" if name else "without a name"
            raise FormatError(f"the device {short(name)} is there {what}; name each once")
        kind = types.get(_name_of(row.get("device_type")), {})
        role = _name_of(row.get("role") or row.get("device_role"))
        boxes[name] = _Box(len(_gpus(kind)), _interfaces(kind))
        if not boxes[name].gpus and not _SWITCH.search(role):
            unknown.append(name)
    for row in _rows(found, "interfaces"):
        owner = _name_of(row.get("device"))
        if owner in boxes:
            boxes[owner].ports[_name_of(row.get("name"))] = _value_of(row.get("type"))
    _fill(boxes, unknown, request, remarks)
    return boxes, _plugged(_rows(found, "cables"), boxes, remarks)


def _of_csv(
    text: str, request: Request, remarks: Remarks
) -> tuple[dict[str, _Box], list[tuple[_Plug, _Plug]]]:
    table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = list(table)
    except csv.Error as error:
        raise FormatError(f"it is not CSV: {error}") from None
    for key in ("side_a_device", "side_b_device", "side_a_name", "side_b_name"):
        if key not in (table.fieldnames or ()):
            raise FormatError(f"it has no column {key}; NetBox's import of cables has one")
        if not all(row[key] for row in rows):
            raise FormatError(f"a cable has no {key}; give one in each row")
    names = dict.fromkeys(
        _plain(str(row[key])) for row in rows for key in ("side_a_device", "side_b_device")
    )
    boxes = {name: _Box() for name in names}
    switches = [name for name in names if _SWITCH_NAME.match(name)]
    if switches:
        words = f"{count(len(switches), 'device')} such as {switches[0]}"
        remarks.assumed.append(f"{words} are switches, as their names say")
    _fill(boxes, [name for name in names if name not in switches], request, remarks)
    plain = [{key: _plain(str(value)) for key, value in row.items() if key} for row in rows]
    return boxes, _plugged(plain, boxes, remarks)


def _plain(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from computing it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in ("=", "+", "-", "@") else cell


def _fill(
    boxes: dict[str, _Box], unknown: Sequence[str], request: Request, remarks: Remarks
) -> None:
    """Give GPUs to devices that are no switches and whose type names none."""
    if not unknown:
        return
    words = f"{count(len(unknown), 'device')} such as {short(unknown[0])}"
    if not request.settings.get("gpus", "").strip():
        doubt = f"no inventory item says how many GPUs {words} have, and their role is no switch's"
        raise Question(doubt, key="gpus", choices=_ASKED)
    gpus = whole(request, "gpus", 8, most=MOST_INSIDE)
    remarks.assumed.append(f"{words} have {count(gpus, 'GPU')} each, as was set")
    for name in unknown:
        boxes[name].gpus = gpus


def _plugged(
    rows: Iterable[Mapping[str, Any]], boxes: Mapping[str, _Box], remarks: Remarks
) -> list[tuple[_Plug, _Plug]]:
    """Return the ends of cables between interfaces, and note those that are left out."""
    found, others = [], 0
    for row in rows:
        sides = [_side(row, side) for side in "ab"]
        if not all(sides) or len(sides[0]) != len(sides[1]):
            others += 1
            continue
        for pair in zip(*sides, strict=True):
            for plug in pair:
                if plug.device not in boxes:
                    raise FormatError(
                        f"a cable ends at {short(plug.device)}, which is not among the devices; "
                        "give all of them"
                    )
                used = boxes[plug.device].used
                used.setdefault(plug.port, len(used))
            if pair[0].device == pair[1].device:
                others += 1
            else:
                found.append(pair)
    if others:
        remarks.left_out.append(
            f"{count(others, 'cable')} that end elsewhere than at interfaces of two devices"
        )
    return found


def _side(row: Mapping[str, Any], side: str) -> list[_Plug]:
    """Return where a cable ends at one side, as the bulk import or the REST API says it."""
    if f"side_{side}_device" in row:
        kind = str(row.get(f"side_{side}_type") or INTERFACE)
        plug = _Plug(_name_of(row[f"side_{side}_device"]), _name_of(row.get(f"side_{side}_name")))
        return [plug] if kind.removeprefix("dcim.") == "interface" else []
    ends = row.get(f"{side}_terminations")
    if not isinstance(ends, list):
        return []
    plugs = []
    for end in ends:
        what = end.get("object") if isinstance(end, Mapping) else None
        if not isinstance(what, Mapping) or end.get("object_type") != INTERFACE:
            return []
        plugs.append(_Plug(_name_of(what.get("device")), _name_of(what.get("name"))))
    return plugs


def _topology(
    boxes: Mapping[str, _Box],
    cables: Sequence[tuple[_Plug, _Plug]],
    request: Request,
    remarks: Remarks,
) -> Topology:
    usual = bandwidth(request, "bandwidth", usual=50.0)
    inner = bandwidth(request, "inner", usual=450.0)
    alpha = number(request, "alpha", 1.3, most=1e6, unit="µs", zero=True)
    devices: list[Device] = []
    links: list[Link] = []
    for name, box in boxes.items():
        if not box.gpus:
            devices.append(device("switch", name))
        elif box.gpus == 1:
            devices.append(device("gpu", name))
        else:
            gpus = [f"{name}/gpu{i}" for i in range(box.gpus)]
            devices += [device("gpu", each, host=name) for each in gpus]
            devices.append(device("switch", f"{name}/inner", host=name))
            for each in gpus:
                links += duplex(each, f"{name}/inner", bandwidth=inner, medium="NVLink")
    if any(box.gpus > 1 for box in boxes.values()):
        remarks.assumed.append(
            f"the GPUs of a device are joined by a switch at {inner:g} GB/s one way, 0 µs"
        )
    silent = 0
    for pair in cables:
        rates = [_rate(boxes[plug.device].ports.get(plug.port, "")) for plug in pair]
        known = [rate for rate in rates if rate]
        silent += not known
        ends = [_device(plug, boxes[plug.device]) for plug in pair]
        rate = min(known, default=usual)
        links += duplex(*ends, bandwidth=rate, alpha=alpha, medium="network")
    if silent:
        remarks.assumed.append(f"{count(silent, 'cable')} of no known type: {usual:g} GB/s one way")
    if cables:
        remarks.assumed.append(f"the latency alpha of each cable is {alpha:g} µs")
    return Topology(request.stem or "Imported", tuple(devices), tuple(links))


def _device(plug: _Plug, box: _Box) -> str:
    """Return the GPU or switch at which a cable ends: by the port's name, else ports in order."""
    if box.gpus <= 1:
        return plug.device
    item = plug.port.partition(":")[0]
    if re.fullmatch(r"gpu\d{1,4}", item) and int(item[3:]) < box.gpus:
        return f"{plug.device}/gpu{int(item[3:])}"
    return f"{plug.device}/gpu{box.used[plug.port] * box.gpus // len(box.used)}"


def _rate(kind: str) -> float | None:
    """Return GB/s of a type of interface, None where it does not say."""
    found = _ETHERNET.match(kind)
    if found is not None and int(found[1]):
        return int(found[1]) / 8
    return _INFINIBAND.get(kind.removeprefix("infiniband-"))


def _rows(found: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list, or of an answer of the REST API."""
    rows = found.get(key, [])
    if isinstance(rows, Mapping):
        rows = rows.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise FormatError(f"{key} is no list of objects; give a list, or an answer of the REST API")
    yield from rows


def _name_of(value: Any) -> str:
    """Return a name, of an object that the REST API nests as well."""
    if isinstance(value, Mapping):
        value = value.get("name") or value.get("model") or value.get("slug")
    return "" if value is None else str(value).strip() if isinstance(value, str) else short(value)


def _value_of(value: Any) -> str:
    return str(value.get("value")) if isinstance(value, Mapping) else str(value or "")


def _gpus(kind: Mapping[str, Any]) -> list[Any]:
    items = kind.get("inventory-items") or []
    if not isinstance(items, list) or len(items) > MOST_INSIDE:
        raise FormatError(f"inventory items of {short(kind.get('model'))} are no list of a few")
    return [
        each
        for each in items
        if isinstance(each, Mapping) and str(each.get("part_id", "")).casefold() == "gpu"
    ]


def _interfaces(kind: Mapping[str, Any]) -> dict[str, str]:
    rows = kind.get("interfaces") or []
    if not isinstance(rows, list):
        raise FormatError(f"interfaces of {short(kind.get('model'))} are no list")
    return {
        _name_of(each.get("name")): _value_of(each.get("type"))
        for each in rows
        if isinstance(each, Mapping)
    }


READER = Reader(
    "netbox",
    "NetBox (devices and cables as JSON, cables as CSV)",
    ("json", "csv"),
    recognises,
    read,
    settings={
        "gpus": "GPUs in each device that is no switch and whose type names none",
        "bandwidth": "GB/s, one way, of cables at interfaces of no known type; 50 by default",
        "inner": "GB/s, one way, from each GPU to the switch in its host; 450 by default",
        "alpha": "latency of each cable in µs; 1.3 by default",
    },
)
WRITER = Writer("netbox", "NetBox (bulk import)", "zip", "topology", write)
