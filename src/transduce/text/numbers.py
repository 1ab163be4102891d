"""Numbers in digits, compared across the ways in which languages write them: 1,000.5 and 1.000,5 and 1 000,5.

A number is cut into runs of digits. Groups of thousands are one run, so the three above have the runs 1000 and 5, and
2:30 and 2.30 have the runs 2 and 30. A text has the numbers of another if it has all of their runs, each as often. Only
digits are compared: 2 and "two" are different here, though a translator may well write one for the other.
"""

import re
from collections import Counter

_NUMBER = re.compile(r"[0-9]+(?:[.,:'’\u00a0\u202f][0-9]+|[ ][0-9]{3}(?![0-9]))*")
_THOUSANDS = re.compile(r"(?<![0-9])[0-9]{1,3}(?:([.,'’ \u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*(?![0-9])")
_EXCHANGED = str.maketrans(".,:", ",..")


def missing_numbers(source: str, translation: str) -> tuple[str, ...]:
    """Return the numbers of `source`, as they are written there, that `translation` lacks."""
    numbers = _NUMBER.findall(source)
    if not numbers:
        return ()
    left = Counter(run for number in _NUMBER.findall(translation) for run in _runs(number))
    lost = []
    for number in numbers:
        runs = Counter(_runs(number))
        if runs <= left:
            left -= runs
        else:
            lost.append(number)
    return tuple(lost)


def other_writings(number: str) -> tuple[str, ...]:
    """Return the ways to write a number: as it is, with points and commas exchanged, without thousands separators."""
    exchanged = number.translate(_EXCHANGED)
    plain = _THOUSANDS.sub(lambda match: re.sub("[^0-9]", "", match[0]), number)
    return tuple(dict.fromkeys((number, exchanged, plain)))


def _runs(number: str) -> list[str]:
    joined = _THOUSANDS.sub(lambda match: re.sub("[^0-9]", "", match[0]), number)
    return [run.lstrip("0") or "0" for run in re.findall("[0-9]+", joined)]
