"""The languages of a model that translates into several: a token such as >>deu<< before a source names one.

Models name languages by two letters (>>de<<), by three (>>deu<<), or with a script or region (>>cmn_Hans<<, >>pt_br<<).
The letters of one language need not begin alike: es is >>spa<<, while >>est<< is Estonian.
"""

from collections.abc import Sequence

from transduce.errors import ModelError
from transduce.text.imported_tokenizer import TAG

_THREE_LETTERS = {
    pair[:2]: tuple(pair[3:].split("|"))
    for line in (
        "af:afr am:amh ar:ara|arb az:aze|azj be:bel bg:bul bn:ben br:bre bs:bos ca:cat cs:ces cy:cym da:dan de:deu",
        "el:ell en:eng eo:epo es:spa et:est|ekk eu:eus fa:fas|pes fi:fin fo:fao fr:fra fy:fry ga:gle gl:glg gu:guj",
        "he:heb hi:hin hr:hrv hu:hun hy:hye id:ind is:isl it:ita ja:jpn ka:kat kk:kaz km:khm kn:kan ko:kor ku:kmr|kur",
        "ky:kir la:lat lb:ltz lo:lao lt:lit lv:lav|lvs mk:mkd ml:mal mn:mon|khk mr:mar ms:zsm|msa|zlm mt:mlt my:mya",
        "nb:nob ne:nep|npi nl:nld nn:nno no:nor oc:oci pa:pan pl:pol pt:por ro:ron ru:rus si:sin sk:slk sl:slv so:som",
        "sq:sqi|als sr:srp sv:swe sw:swa|swh ta:tam te:tel tg:tgk th:tha tk:tuk tl:tgl tr:tur tt:tat ug:uig uk:ukr",
        "ur:urd uz:uzb|uzn vi:vie yi:yid|ydd zh:zho|cmn zu:zul",
    )
    for pair in line.split()
}
_TWO_LETTERS = {three: two for two, several in _THREE_LETTERS.items() for three in several}


def target_tag(pieces: Sequence[str], wanted: str | None) -> str | None:
    """Return the token of the language to translate to, or None if the model has no such tokens."""
    tags = [piece for piece in pieces if TAG.fullmatch(piece)]
    if not tags:
        return None
    fitting = [tag for tag in tags if tag == f">>{wanted}<<"]
    if wanted and not fitting:
        language, part = _parts(wanted)
        of_language = [tag for tag in tags if _parts(tag[2:-2])[0] == language]
        exact, plain = ([tag for tag in of_language if _parts(tag[2:-2])[1] == own] for own in (part, ""))
        fitting = exact or plain or ([] if part else of_language)
    if len(fitting) != 1:
        offer = ", ".join(tag[2:-2] for tag in tags[:40])
        raise ModelError(
            f"This model translates to several languages. Name one of them by `--to`: {offer}"
            f"{' …' if len(tags) > 40 else ''}{f' ({wanted} fits {len(fitting)} of them)' if wanted else ''}."
        )
    return fitting[0]


def other_targets(pieces: Sequence[str], own: str | None) -> dict[str, str]:
    """Return the token for each language but that of the name `own`, by its name with two letters if it has one."""
    found: dict[str, str] = {}
    for tag in pieces:
        if TAG.fullmatch(tag):
            language, mark, part = tag[2:-2].partition("_")
            name = short_name(language) + mark.replace("_", "-") + part
            found[name if name not in found else tag[2:-2]] = tag
    return {name: tag for name, tag in found.items() if name != own}


def short_name(language: str) -> str:
    """Return the name of a language with two letters if it has one, such as de for deu."""
    return _TWO_LETTERS.get(language, language)


def _parts(name: str) -> tuple[str, str]:
    """Return the language, with two letters if it has them, and the script or region."""
    language, _, part = name.casefold().replace("-", "_").partition("_")
    return short_name(language), part
