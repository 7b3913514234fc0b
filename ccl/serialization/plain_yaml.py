"""YAML as people write it: plain values, nothing that grows without end, and one error."""

from __future__ import annotations

from typing import Any

import yaml

from ccl.errors import FormatError

MOST_BYTES = 1_000_000
"""Bytes of a file that somebody wrote by hand; one with more holds something else."""


def yaml_in(content: bytes, *, name: str) -> Any:
    """Return the plain values of a YAML file.

    Parameters
    ----------
    content
        YAML.
    name
        What the sentences of errors begin with.

    Raises
    ------
    FormatError
        If it is too large, has an alias or is no YAML.
    """
    if len(content) > MOST_BYTES:
        msg = f"{name} has {len(content):,} bytes; files like it have {MOST_BYTES:,} at most"
        raise FormatError(msg)
    try:
        text = content.decode("utf-8-sig")
        # An alias may stand for something that grows without end, and nobody needs one here.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            msg = f"{name} has an alias (*); write its value out"
            raise FormatError(msg)
        return yaml.safe_load(text)
    except UnicodeDecodeError:
        msg = f"{name} is not UTF-8 text; save it as UTF-8"
        raise FormatError(msg) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        msg = f"{name} is not YAML: {' '.join(str(error).split())}"
        raise FormatError(msg) from None
