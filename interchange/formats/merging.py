"""Two descriptions of one machine as one: links between GPUs from one, the PCIe tree from another.

GPUs are matched by name, in order, or as told. Other devices are matched by name or by what they
are joined with: a PCIe switch of GPUs 0 and 1 is the same in both, whatever it is called. Of the
links between the same ends the first description's stay; what only the second has is added.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ccl.errors import FormatError
from ccl.serialization.documents import Document, document
from ccl.text import count
from ccl.topology import Device, Link, SharedLimit, Topology
from interchange.formats.format import Remarks, Report
from interchange.formats.machines._pcie_tree import components

LEAVES = frozenset({"gpu", "nic"})
"""Kinds that hang on a tree with one link, so that a second one of its medium is the same again."""

Signature = frozenset[tuple[str, str]]
"""The devices, by name in the first, that a device is joined with, and over which medium."""

Signatures = Callable[[str], Signature]


def merge(
    first: Document, second: Document, *, pairs: Mapping[str, str] | None = None
) -> tuple[Document, Report]:
    """Join two descriptions of the same machine.

    Parameters
    ----------
    first
        Whose names, order and links stay.
    second
        What it has beside these is added.
    pairs
        The GPU of `second` that each GPU of `first` is, by name; None matches equal names, or else
        GPUs in their order.

    Returns
    -------
    The first document itself where nothing is added, else a topology document; and what became of
    the second.

    Raises
    ------
    FormatError
        If they have unequally many GPUs, or `pairs` does not pair them all.
    """
    merging = _Merging(first.topology, second.topology)
    merging.match_gpus(pairs)
    merging.match_others()
    merging.name_others()
    merging.link()
    made = merging.topology()
    if made == first.topology:
        return first, merging.report()
    places = {
        merging.match[name]: place
        for name, place in second.positions.items()
        if merging.match.get(name) in made.index
    }
    if first.kind != "topology":
        merging.left_out.append(f"the {first.kind} of {first.topology}, which is of fewer links")
    made_document = document(
        made, positions=places | dict(first.positions), annotations=first.annotations
    )
    return made_document, merging.report()


class _Merging(Remarks):
    """Carries the second topology over to the first, step by step.

    `match` has the name in the first of each device of the second, and in the end of all.
    """

    def __init__(self, first: Topology, second: Topology) -> None:
        super().__init__()
        self.first = first
        self.second = second
        self.match: dict[str, str] = {}
        self.known: set[str] = set()
        self.joined_first = _joined(first)
        self.joined_second = _joined(second)
        self.added: set[str] = set()
        self.links: list[Link] = []

    def match_gpus(self, pairs: Mapping[str, str] | None) -> None:
        """Match the GPUs of both."""
        ours, theirs = self.first.ranks, self.second.ranks
        if len(ours) != len(theirs):
            raise FormatError(
                f"{self.first} has {len(ours)} GPUs and {self.second} has {len(theirs)}; "
                "merge two descriptions of the same machine"
            )
        if pairs is not None:
            if set(pairs) != set(ours) or sorted(pairs.values()) != sorted(theirs):
                raise FormatError(
                    f"the pairs do not give each of the {len(ours)} GPUs of {self.first} another "
                    f"of {self.second}; name each once"
                )
            self.match = {there: here for here, there in pairs.items()}
            self.taken.append(f"{len(ours)} GPUs paired as told")
        elif set(ours) == set(theirs):
            self.match = {name: name for name in theirs}
            self.taken.append(f"{len(ours)} GPUs that are called alike")
        else:
            self.match = dict(zip(theirs, ours, strict=True))
            shown = ", ".join(f"{b} is {a}" for b, a in list(self.match.items())[:4])
            more = ", ..." if len(ours) > 4 else ""
            self.assumed.append(f"GPUs are the same in their order: {shown}{more}")

        self.known = set(self.match.values())

    def match_others(self) -> None:
        """Match devices whose neighbours are, then those whose neighbours these are, and so on."""
        while True:
            ours = [each for each in self.first.devices if each.name not in self.known]
            theirs = [each for each in self.second.devices if each.name not in self.match]
            found = (
                self.alike(ours, theirs)
                or self.half_alike(ours, theirs)
                or self.namesakes(ours, theirs)
            )
            if not found:
                break
            self.match.update(found)
            self.known.update(found.values())
        others = len(self.match) - len(self.second.ranks)
        if others:
            self.taken.append(f"{count(others, 'other device')} that both have")

    def alike(self, ours: list[Device], theirs: list[Device]) -> dict[str, str]:
        """Match devices with the same neighbours, as far as these are matched."""
        found: dict[str, str] = {}
        fitting = self.by_signature(ours, self.signature_first)
        for key, group in self.by_signature(theirs, self.signature_second).items():
            free = fitting.get(key, [])
            same = set(free) & set(group)
            found |= {name: name for name in same}
            rest = [[each for each in names if each not in same] for names in (group, free)]
            if len(rest[0]) == len(rest[1]):
                found |= dict(zip(*rest, strict=True))
        return found

    def half_alike(self, ours: list[Device], theirs: list[Device]) -> dict[str, str]:
        """Match devices of one name and kind that share a neighbour, and adapters of one name."""
        named = {each.name: each for each in ours}
        return {
            each.name: each.name
            for each in theirs
            if each.name in named
            and named[each.name].kind == each.kind
            and (
                each.kind == "nic"
                or self.signature_first(each.name) & self.signature_second(each.name)
            )
        }

    def namesakes(self, ours: list[Device], theirs: list[Device]) -> dict[str, str]:
        """Match devices of one name and kind that no matched neighbour distinguishes."""
        named = {(each.name, each.kind) for each in ours if not self.signature_first(each.name)}
        return {
            each.name: each.name
            for each in theirs
            if (each.name, each.kind) in named and not self.signature_second(each.name)
        }

    def by_signature(
        self, devices: Iterable[Device], signature: Signatures
    ) -> dict[tuple[str, Signature], list[str]]:
        """Return the names of devices by kind and matched neighbours, those without left out."""
        found: dict[tuple[str, Signature], list[str]] = {}
        for each in devices:
            near = signature(each.name)
            if near:
                found.setdefault((each.kind, near), []).append(each.name)
        return found

    def signature_first(self, name: str) -> Signature:
        """Return the matched neighbours of a device of the first."""
        return frozenset(each for each in self.joined_first[name] if each[0] in self.known)

    def signature_second(self, name: str) -> Signature:
        """Return the matched neighbours of a device of the second, by their names in the first."""
        return frozenset(
            (self.match[near], medium)
            for near, medium in self.joined_second[name]
            if near in self.match
        )

    def name_others(self) -> None:
        """Give the devices that only the second has names that are free."""
        used = set(self.first.index)
        for each in self.second.devices:
            if each.name in self.match:
                continue
            name, number = each.name, 2
            while name in used:
                name, number = f"{each.name}-{number}", number + 1
            used.add(name)
            self.added.add(name)
            self.match[each.name] = name

    def link(self) -> None:
        """Take the links that only the second has, but no second link of a leaf and its medium."""
        told = {
            (name, medium)
            for name, joined in self.joined_first.items()
            if self.first.device(name).kind in LEAVES
            for _, medium in joined
            if medium
        }
        double: list[Link] = []
        both = 0
        for each in self.second.links:
            link = replace(each, src=self.match[each.src], dst=self.match[each.dst])
            if link.ends in self.first.link_index:
                both += 1
            elif {(link.src, family(link)), (link.dst, family(link))} & told:
                double.append(link)
            else:
                self.links.append(link)
        if both:
            self.left_out.append(f"{count(both, 'link')} of {self.second} that {self.first} has")
        if double:
            media = ", ".join(sorted({family(each) for each in double}))
            self.left_out.append(
                f"{count(len(double), 'link')} of {self.second} over {media}, which {self.first} "
                "tells of the same GPUs and adapters"
            )
            self.drop_cut_off({name for each in double for name in each.ends})

    def drop_cut_off(self, cut: set[str]) -> None:
        """Leave out what lost a link and is joined with nothing of the first any more."""
        ends = [link.ends for link in self.links if self.added & {*link.ends}]
        groups = components(sorted(self.added.union(*ends)), ends)
        alone = (group for group in groups if self.added.issuperset(group))
        dropped = {name for group in alone if cut.intersection(group) for name in group}
        if dropped:
            self.added -= dropped
            self.links = [each for each in self.links if not dropped & {each.src, each.dst}]
            self.left_out.append(
                f"{count(len(dropped), 'device')} of {self.second} joined by such links alone; to "
                "keep them, give it first"
            )

    def topology(self) -> Topology:
        """Return the first topology with what the second adds."""
        hosts = self.hosts()
        back = {here: self.second.device(there) for there, here in self.match.items()}
        devices = [self.housed(each, back.get(each.name), hosts) for each in self.first.devices]
        for each in self.second.devices:
            name = self.match[each.name]
            if name in self.added:
                host = hosts.get(each.host, each.host) if each.host else None
                devices.append(replace(each, name=name, host=host))
        if self.added:
            self.taken.append(f"{count(len(self.added), 'device')} that only {self.second} has")
        if self.links:
            self.taken.append(f"{count(len(self.links), 'link')} that only {self.second} has")
        links = (*self.first.links, *self.links)
        ends = {each.ends for each in links}
        limits = (*self.first.limits, *self.limits(ends))
        return Topology(self.first.name, tuple(devices), links, limits)

    def hosts(self) -> dict[str, str]:
        """Return what each host of the second is called in the first."""
        hosts: dict[str, str] = {}
        for there, here in self.match.items():
            old = self.second.device(there).host
            new = self.first.device(here).host if here in self.first.index else None
            if old is not None and new is not None:
                hosts.setdefault(old, new)
        other = [f"{old} is {new}" for old, new in hosts.items() if old != new]
        if other:
            more = ", ..." if len(other) > 4 else ""
            self.assumed.append(f"hosts are the same: {', '.join(other[:4])}{more}")
        return hosts

    def housed(self, ours: Device, theirs: Device | None, hosts: Mapping[str, str]) -> Device:
        """Return a device of the first with the host that the second tells, if it has none."""
        if ours.host is not None or theirs is None or theirs.host is None:
            return ours
        return replace(ours, host=hosts.get(theirs.host, theirs.host))

    def limits(self, ends: set[tuple[str, str]]) -> list[SharedLimit]:
        """Return the limits that only the second has, of links that are there."""
        ours = {each.name: each for each in self.first.limits}
        made: list[SharedLimit] = []
        lost = 0
        for each in self.second.limits:
            links = tuple((self.match[src], self.match[dst]) for src, dst in each.links)
            name, number = each.name, 2
            while name in ours and set(ours[name].links) != set(links):
                name, number = f"{each.name}-{number}", number + 1
            if name in ours or not set(links) <= ends:
                lost += 1
                continue
            ours[name] = SharedLimit(name, links, each.bandwidth)
            made.append(ours[name])
        if made:
            self.taken.append(f"{count(len(made), 'shared limit')} that only {self.second} has")
        if lost:
            self.left_out.append(
                f"{count(lost, 'shared limit')} of {self.second}, of links that are left out or "
                "limited alike"
            )
        return made


def family(link: Link) -> str:
    """Return what a link is made of, without a generation: NVLink 3 and 4 are NVLinks."""
    return link.medium.strip().rstrip("0123456789.").strip().lower()


def _joined(topology: Topology) -> dict[str, set[tuple[str, str]]]:
    """Return the neighbours of each device with the media that join them."""
    found: dict[str, set[tuple[str, str]]] = {each.name: set() for each in topology.devices}
    for link in topology.links:
        medium = family(link)
        found[link.src].add((link.dst, medium))
        found[link.dst].add((link.src, medium))
    return found
