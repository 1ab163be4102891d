"""The encodings that a file may declare: those of text on real systems. Others, such as punycode, are refused."""

import codecs
from pathlib import Path

from transduce.errors import DataError

_CHARSETS = frozenset(
    [
        "utf-8",
        "ascii",
        "koi8-r",
        "koi8-u",
        "mac-roman",
        "tis-620",
        "shift_jis",
        "cp932",
        "euc_jp",
        "iso2022_jp",
    ]
    + ["gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_kr", "cp949", "iso8859-1"]
    + [f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)]
    + [f"cp{page}" for page in (437, 850, 852, 866, 874, *range(1250, 1259))]
)


def require_charset(name: str, *, path: Path) -> str:
    """Return Python's name of an encoding that a file declares; DataError if it is not one for text."""
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        known = ""
    if known not in _CHARSETS:
        raise DataError(f"{path} declares the encoding {name}, which is not supported. Convert the file to UTF-8.")
    return known
