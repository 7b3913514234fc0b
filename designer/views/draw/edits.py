"""Edits made beside the canvas, as commands that the canvas carries out and can undo.

Each function takes the JSON of a topology and says what to do; the values are checked here by
making the very nouns, so that a wrong one is refused in the words of `ccl`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ccl import topology as nouns
from ccl.errors import ProblemError
from ccl.serialization.quantity import COUNT, KINDS, parse_quantity, parse_size
from ccl.topology import Device, Link, SharedLimit
from designer.shell import ui

Json = Mapping[str, Any]
Ends = tuple[str, str]

ABILITIES = ("stores", "copies", "reduces")


def command(name: str, /, **args: Any) -> dict[str, Any]:
    """Return a command without its number, which the page gives it."""
    return {"name": name, "args": args}


def edit_device(topology: Json, names: Sequence[str], field: str, value: Any) -> Any:
    """Change one field of devices; None if that changes nothing.

    Raises
    ------
    CclError
        If the value is not one that the field takes.
    """
    chosen = [each for each in topology["devices"] if each["name"] in set(names)]
    if not chosen:
        return None
    if field == "name":
        return _rename(topology, names[0], str(value or "").strip())
    if field == "buffer":
        field, value = "buffer_bytes", buffer_bytes(value)
    elif field == "host":
        value = str(value).strip() or None if value else None
    if all(each.get(field) == value for each in chosen):
        return None
    values = {field: value}
    if field == "kind":
        values |= dict.fromkeys(ABILITIES)
    for each in chosen:
        Device(**_whole_device({**each, **_with_usual(values)}))
    return command("edit_devices", devices=list(names), values=_with_usual(values))


def edit_link(topology: Json, links: Sequence[Ends], field: str, *, value: Any, both: bool) -> Any:
    """Change one field of links, and of their opposites if `both`; None if nothing changes.

    Raises
    ------
    CclError
        If the value is not one that the field takes.
    """
    chosen = _links(topology, links, both=both)
    if not chosen or (value in {None, ""} and field != "medium"):
        return None
    if field == "duplex":
        values = {"duplex": bool(value)}
        return command("edit_links", links=[list(each) for each in links], values=values)
    value = str(value or "") if field == "medium" else _number(field, value, chosen[0])
    if all(each.get(field) == value for each in chosen):
        return None
    for each in chosen:
        Link(**{**each, field: value})
    return command(
        "edit_links", links=[list(each) for each in links], values={field: value}, both=both
    )


def with_limit(topology: Json, name: str, bandwidth: Any, *, links: Sequence[Ends]) -> Any:
    """Add a shared limit over links.

    Raises
    ------
    CclError
        If the name is taken or the bandwidth not positive.
    """
    limits = list(topology.get("limits", []))
    if not links:
        raise ProblemError("select the links that share the limit first")
    name = name.strip() or _free_name("limit", {each["name"] for each in limits})
    if name in {each["name"] for each in limits}:
        raise ProblemError(f"there is a limit called {name} already; choose another name")
    made = SharedLimit(name, tuple(dict.fromkeys(links)), _number("bandwidth", bandwidth, None))
    added = {
        "name": made.name,
        "links": [list(each) for each in made.links],
        "bandwidth": made.bandwidth,
    }
    return command("edit_limits", limits=[*limits, added])


def edit_limit(topology: Json, name: str, bandwidth: Any) -> Any:
    """Change the bandwidth of a shared limit; None if nothing changes.

    Raises
    ------
    FormatError
        If it is not positive.
    """
    limits = topology.get("limits", [])
    value = _number("bandwidth", bandwidth, None)
    if all(each["bandwidth"] == value for each in limits if each["name"] == name):
        return None
    changed = [{**each, "bandwidth": value} if each["name"] == name else each for each in limits]
    for each in changed:
        SharedLimit(each["name"], tuple((a, b) for a, b in each["links"]), each["bandwidth"])
    return command("edit_limits", limits=changed)


def without_limit(topology: Json, name: str) -> dict[str, Any]:
    """Remove a shared limit."""
    return command(
        "edit_limits", limits=[each for each in topology["limits"] if each["name"] != name]
    )


def buffer_bytes(value: Any) -> float | None:
    """Read a buffer's size as typed; empty means no limit.

    Raises
    ------
    FormatError
        If it is not a size.
    """
    text = str(value or "").strip()
    return parse_size(text) if text else None


def from_form(
    topology: Json, selection: Json | None, *, kind: str, field: str, value: Any, both: bool
) -> Any:
    """Return the command for a field of the inspector that was changed; None if for nothing.

    Parameters
    ----------
    topology, selection
        As they are.
    kind
        Of the field's id: ``device-edit``, ``link-flag`` ...
    field
        What is edited.
    value
        What it was set to.
    both
        Whether opposite links change alike.

    Raises
    ------
    CclError
        If the value is not one that the field takes.
    """
    chosen = selection or {}
    if kind in {"device-edit", "device-flag"}:
        return edit_device(topology, chosen.get("devices") or [], field, value)
    if kind in {"link-edit", "link-flag"}:
        links = selected_links(topology, selection)
        return edit_link(topology, links, field, value=value, both=both)
    if kind == "limit-edit":
        return edit_limit(topology, field, value)
    if kind == "host-edit":
        return _rename_host(chosen, str(value or "").strip())
    return command("align", how=value) if value else None


def from_button(topology: Json, selection: Json | None, *, name: str, form: Json) -> Any:
    """Return the command for a button of the inspector.

    Raises
    ------
    CclError
        If the form beside the button is not filled in right.
    """
    hosts = (selection or {}).get("hosts") or []
    if name == "repeat":
        hosts_in_all = parse_quantity(
            form.get("count"), COUNT, what="the number of hosts", least=2, most=ui.MOST_HOSTS
        )
        times = int(hosts_in_all) - 1
        join = None if form.get("join") == "none" else form.get("join")
        return command("repeat_host", host=hosts[0], times=times, join=join)
    if name == "limit":
        links = _both_ways(topology, selected_links(topology, selection))
        label = str(form.get("name") or "")
        return with_limit(topology, label, form.get("bandwidth"), links=links)
    if name == "drop-limit":
        return without_limit(topology, form["limit"])
    return command(name)


def selected_links(topology: Json, selection: Json | None) -> list[Ends]:
    """Return the selected links that exist, one of each pair of opposites."""
    there = {(each["src"], each["dst"]) for each in topology["links"]}
    found: list[Ends] = []
    for src, dst in (selection or {}).get("links") or []:
        if (src, dst) in there and (dst, src) not in found and (src, dst) not in found:
            found.append((src, dst))
    return found


def _links(topology: Json, links: Sequence[Ends], *, both: bool) -> list[dict[str, Any]]:
    wanted = {ends for a, b in links for ends in (((a, b), (b, a)) if both else ((a, b),))}
    return [each for each in topology["links"] if (each["src"], each["dst"]) in wanted]


def _both_ways(topology: Json, links: Sequence[Ends]) -> list[Ends]:
    """Return the links and, where there are any, their opposites."""
    return [(each["src"], each["dst"]) for each in _links(topology, links, both=True)]


def _rename_host(selection: Json, name: str) -> Any:
    host = selection["hosts"][0]
    if not name:
        raise ProblemError(f"host {host} needs a name that is not empty")
    return None if name == host else command("rename_host", host=host, name=name)


def _rename(topology: Json, old: str, new: str) -> Any:
    if new == old:
        return None
    if not new:
        raise ProblemError(f"device {old} needs a name that is not empty")
    if any(each["name"] == new for each in topology["devices"]):
        raise ProblemError(f"there is a device called {new} already; choose another name")
    return command("rename_device", device=old, name=new)


def _with_usual(values: dict[str, Any]) -> dict[str, Any]:
    """Give a device that changes its kind the abilities of the new one."""
    if "kind" not in values:
        return values
    return {**values, **dict(zip(ABILITIES, nouns.ABILITIES[values["kind"]], strict=True))}


def _whole_device(device: dict[str, Any]) -> dict[str, Any]:
    return {"host": None, "buffer_bytes": None, **device}


def _number(field: str, value: Any, link: Json | None) -> float:
    told = ui.LINK_QUANTITIES[field]
    what = told["what"] if link is None else f"{told['what']} of {link['src']}->{link['dst']}"
    limits = {each: told[each] for each in ("least", "above") if each in told}
    return parse_quantity(value, KINDS[told["kind"]], what=what, **limits)


def _free_name(stem: str, taken: set[str]) -> str:
    number = 0
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"
