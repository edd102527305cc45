"""A refused call names its argument; its other words may change, so that tests leave them alone.

The full text of about thirty messages stands in the golden file.
"""

import re

import pytest


def check_refused(argument, call, *given):
    """Assert that ``call(*given)`` raises a ValueError or a TypeError that names the argument.

    Return its message.

    `argument` may also be the option, the field or the column that is wrong, as a user writes it.
    """
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*given)
    named = rf"(?<!\w){re.escape(argument)}(?!\w)"
    is_named = getattr(caught.value, "argument", None) == argument
    assert is_named or re.search(named, str(caught.value)), repr(caught.value)
    return str(caught.value)


def refusals(table):
    """Return the mark of a test with the arguments ``argument, call``.

    `table` holds such pairs, or a list of calls for each argument.
    """
    if isinstance(table, dict):
        table = [(argument, call) for argument, calls in table.items() for call in calls]
    return pytest.mark.parametrize(("argument", "call"), table, ids=[name for name, _ in table])
