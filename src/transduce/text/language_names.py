"""English names of languages, for lists that people read."""

_NAMES = dict(
    pair.split(":")
    for line in (
        "ar:Arabic bg:Bulgarian bn:Bengali ca:Catalan cs:Czech da:Danish de:German el:Greek en:English eo:Esperanto",
        "es:Spanish et:Estonian eu:Basque fa:Persian fi:Finnish fr:French ga:Irish gl:Galician gu:Gujarati he:Hebrew",
        "hi:Hindi hr:Croatian hu:Hungarian id:Indonesian is:Icelandic it:Italian ja:Japanese kk:Kazakh ko:Korean",
        "lt:Lithuanian lv:Latvian mk:Macedonian ms:Malay mt:Maltese nb:Norwegian nl:Dutch pa:Punjabi pl:Polish",
        "pt:Portuguese ro:Romanian ru:Russian sk:Slovak sl:Slovenian sq:Albanian sr:Serbian sv:Swedish sw:Swahili",
        "ta:Tamil te:Telugu th:Thai tl:Tagalog tr:Turkish uk:Ukrainian ur:Urdu vi:Vietnamese zh:Chinese und:Unknown",
    )
    for pair in line.split()
)


def code_of_language(name: str) -> str | None:
    """Return the code of a language by its English name, in any case, or None if it is unknown."""
    return next((code for code, known in _NAMES.items() if known.casefold() == name.casefold()), None)


def language_name(code: str) -> str:
    """Return the English name of a language tag such as `de` or `de-AT`, or the tag itself if its name is unknown."""
    return _NAMES.get(code.partition("-")[0], code)


def is_known_language(code: str) -> bool:
    """Return whether a tag such as `de` or `de-AT` is that of a language with a known name."""
    return code.partition("-")[0] in _NAMES
