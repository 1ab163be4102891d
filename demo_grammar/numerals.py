"""Numbers, days and hours in words: twenty-three, dreiundzwanzig; on the third of May, am dritten Mai.

The languages differ in order (twenty-three is drei-und-zwanzig), in half hours (half past seven is halb acht) and in
their exceptions.
"""

_ENGLISH_SMALL = "zero one two three four five six seven eight nine ten eleven twelve"
_ENGLISH_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_ENGLISH_ONES = f"{_ENGLISH_SMALL} {_ENGLISH_TEENS}".split()
_ENGLISH_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_GERMAN_SMALL = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_GERMAN_TEENS = "dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
_GERMAN_ONES = f"{_GERMAN_SMALL} {_GERMAN_TEENS}".split()
_GERMAN_TENS = ["-", "-", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_ENGLISH_ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth"}
_GERMAN_ORDINALS = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}


def english_number(number: int) -> str:
    """Return a number from 0 to 99 in English words."""
    tens, ones = divmod(number, 10)
    if number < 20:
        return _ENGLISH_ONES[number]
    return _ENGLISH_TENS[tens] + (f"-{_ENGLISH_ONES[ones]}" if ones else "")


def german_number(number: int) -> str:
    """Return a number from 0 to 99 in German words."""
    tens, ones = divmod(number, 10)
    if number < 20:
        return _GERMAN_ONES[number]
    if not ones:
        return _GERMAN_TENS[tens]
    return ("ein" if ones == 1 else _GERMAN_ONES[ones]) + "und" + _GERMAN_TENS[tens]


def english_ordinal(number: int) -> str:
    """Return an ordinal from 1 to 99 in English words."""
    tens, ones = divmod(number, 10)
    if number >= 20:
        return f"{_ENGLISH_TENS[tens]}-{english_ordinal(ones)}" if ones else _ENGLISH_TENS[tens][:-1] + "ieth"
    return _ENGLISH_ORDINALS.get(number) or _ENGLISH_ONES[number] + "th"


def german_ordinal(number: int) -> str:
    """Return the stem of an ordinal from 1 to 99, which takes adjective endings: dritt-en."""
    if number < 20:
        return _GERMAN_ORDINALS.get(number) or german_number(number) + "t"
    return german_number(number) + "st"


def english_hour(quarters: int) -> str:
    """Return the time that is `quarters` quarters of an hour after twelve: at half past seven."""
    hour, quarter = divmod(quarters, 4)
    this, following = (_ENGLISH_ONES[(h - 1) % 12 + 1] for h in (hour, hour + 1))
    return (f"at {this} o'clock", f"at a quarter past {this}", f"at half past {this}", f"at a quarter to {following}")[
        quarter
    ]


def german_hour(quarters: int) -> str:
    """Return the same time in German: um halb acht."""
    hour, quarter = divmod(quarters, 4)
    this, following = (_GERMAN_ONES[(h - 1) % 12 + 1] for h in (hour, hour + 1))
    whole = "ein" if this == "eins" else this
    return (f"um {whole} Uhr", f"um Viertel nach {this}", f"um halb {following}", f"um Viertel vor {following}")[
        quarter
    ]
