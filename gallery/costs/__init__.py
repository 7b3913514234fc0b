"""What a cluster costs, draws and how its cables run."""

from gallery.costs.bill import Bill, LaidCable, Row, bill_if_sold, bill_of
from gallery.costs.floor import Floor
from gallery.costs.parts import Parts, Span, read_parts

__all__ = [
    "Bill",
    "Floor",
    "LaidCable",
    "Parts",
    "Row",
    "Span",
    "bill_if_sold",
    "bill_of",
    "read_parts",
]
