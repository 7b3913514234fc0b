"""Slices of a TPU v4 pod."""

from dataclasses import replace

from ccl.errors import ProblemError
from ccl.topology import Topology
from gallery.build import Wire
from gallery.entry import Entry, Figure
from gallery.toys import lattice, written


def tpu_v4(*, shape: tuple[int, ...] = (4, 4, 4), alpha: float = 1.0) -> Topology:
    """Make a slice of a TPU v4 pod; slices of whole 4×4×4 cubes are closed to a torus.

    Raises
    ------
    ProblemError
        If it has not three sides or more chips than a pod.
    """
    if len(shape) != 3 or max(shape, default=0) > 64:
        raise ProblemError(
            f"shape {written(shape)} is no TPU v4 slice; give three sides, such as 4x4x4"
        )
    wire = Wire(bandwidth=45.0, alpha=alpha, medium="ICI")
    cubes = all(side % 4 == 0 for side in shape)
    made = lattice(f"TPU v4 {written(shape)}", shape, wire, wrap=cubes)
    return replace(
        made,
        devices=tuple(
            replace(each, host=_board(number, shape)) for number, each in enumerate(made.devices)
        ),
    )


def _board(number: int, shape: tuple[int, ...]) -> str:
    """Return the host of a chip: hosts hold squares of 2×2 chips."""
    rows, columns = -(-shape[1] // 2), -(-shape[2] // 2)
    layer, rest = divmod(number, shape[1] * shape[2])
    row, column = divmod(rest, shape[2])
    return f"h{(layer * rows + row // 2) * columns + column // 2}"


ENTRIES = (
    Entry(
        "tpu-v4",
        "TPU v4 slice",
        "Google",
        "Chips with six links each in a 3D torus; four chips to a host. Slices that are not made "
        "of whole 4×4×4 cubes are open grids.",
        "cloud.google.com/tpu/docs/v4; jax-ml.github.io/scaling-book",
        figures=(
            Figure("each link", "45 GB/s one way", "spec"),
            Figure("latency of each link", "1 µs", "assumed"),
        ),
        make=tpu_v4,
    ),
)
