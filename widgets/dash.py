"""Our views as Dash components: every property is Input, State and Output."""

from typing import Any

from dash.development.base_component import Component

from widgets import canvas_file
from widgets.view_model.scene import PAIR_PROPS, PROPS


class _Hosted(Component):
    """A component of ours that `dash_host.js` draws."""

    _namespace = "widgets"
    _props: tuple[str, ...] = ()

    def __init__(self, **props: Any) -> None:
        self._children_props: list[str] = []
        self._base_nodes: list[str] = []
        self._prop_names = ["id", "className", "style", *self._props]
        self.available_properties = self._prop_names
        self._valid_wildcard_attributes: list[str] = []
        self.available_wildcard_properties: list[str] = []
        super().__init__(**props)  # type: ignore[no-untyped-call]


class GapChart(_Hosted):
    """How close a solve has come over time.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and ``course`` as `widgets.view_model.gap.course` makes
        it.
    """

    _type = "GapChart"
    _props = ("course",)


class QuantityField(_Hosted):
    """A field for a quantity with its unit: ``400 Gb/s``, ``64KiB``, ``1e3``.

    It says beside itself what it understood, and marks what it refuses.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and

        ``kind``
            One of `ccl.serialization.quantity.KINDS`.
        ``what``
            What it is, with which an error begins.
        ``value``
            The number in the unit of its kind, or a text; empty where there is none. A text that
            is refused is the value as it was typed, so that whoever reads it refuses it as well.
        ``least``, ``above``, ``most``
            As for `ccl.serialization.quantity.parse_quantity`.
        ``factors``
            Whether it may also be a factor such as ``1.5x``.
        ``optional``
            Whether it may be empty.
        ``hold``
            Whether what is refused leaves the value as it was.
        ``verbatim``
            Whether the value is the text as typed.
        ``subject``
            What it is about: where this changes, what was typed is forgotten.
        ``debounce``
            ms without a key after which the value follows; without it, on Enter or on leaving.
        ``label``, ``description``, ``placeholder``, ``prefix``, ``ariaLabel``, ``title``
            Words around and in it.
        ``trouble``
            Why a value that can be read is refused all the same, by whoever knows more of it.
        ``size``, ``disabled``
            ``xs`` or ``sm``; whether nothing can be typed.
        ``persistence``, ``persistence_type``
            As for Dash's own fields.
    """

    _type = "QuantityField"
    _props = (
        "kind", "what", "value", "least", "above", "most", "factors", "optional", "hold",
        "verbatim", "subject", "debounce", "label", "description", "placeholder", "prefix",
        "ariaLabel", "title", "trouble", "size", "disabled",
        "persistence", "persistence_type", "persisted_props",
    )  # fmt: skip

    def __init__(self, **props: Any) -> None:
        super().__init__(persisted_props=["value"], **props)


class TopologyCanvas(_Hosted):
    """Draw a cluster and play its schedule.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and those that `widgets.view_model.scene.PROPS` explains.
    """

    _type = "TopologyCanvas"
    _props = tuple(PROPS)

    def __init__(self, **props: Any) -> None:
        canvas_file()  # says how to build it, where the browser would show an empty page
        super().__init__(**props)


class SchedulePair(_Hosted):
    """Play two schedules side by side, in step.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and those that `widgets.view_model.scene.PAIR_PROPS`
        explains; ``films`` has to be given, empty where there is nothing to play yet.
    """

    _type = "SchedulePair"
    _props = tuple(PAIR_PROPS)
