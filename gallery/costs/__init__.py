"""What a cluster costs, draws and how its cables run."""

from gallery.costs.bill import Bill, LaidCable, Prices, Row, bill_of
from gallery.costs.floor import Floor
from gallery.costs.parts import Parts, Span, read_parts

__all__ = ["Bill", "Floor", "LaidCable", "Parts", "Prices", "Row", "Span", "bill_of", "read_parts"]
