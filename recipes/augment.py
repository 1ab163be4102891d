"""Add pairs with placeholders, numbers, tags, names and untidy text to an English-German corpus.

    python recipes/augment.py train.en.gz,train.de.gz --output augmented.tsv.gz

Everyday sentences contain few placeholders, URLs, tags and odd names. Each kind of change below takes pairs of the
corpus and changes both sides in the same way, so that the model learns what to copy and what to keep. Typing errors
change the source alone, which with --reverse is the second file. The output has one new pair per line, source and
target separated by a tab, without the corpus itself. The same seed writes the same file.
"""

# ruff: noqa: SIM905 (a list of words is easier to read as text)

import argparse
import gzip
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

Pair = tuple[str, str]

NUMBER_WORDS = """
two=zwei three=drei four=vier five=fünf six=sechs seven=sieben eight=acht nine=neun ten=zehn twelve=zwölf
twenty=zwanzig thirty=dreißig fifty=fünfzig
""".split()
WORDS = """
account archive basket branch button cache channel city color count date device email error file folder group host id
image index item key label language length level limit link list message mode month name number order page password
path percent port price project query rate result role room score size source state status table target team text time
title total type unit update url user value version week width year zone
""".split()
SYLLABLES = """
ba be bo da de do fa fi ga go ha he jo ka ki la le li lo ma me mi mo na ne ni no pa pe ra re ri ro sa se si so ta te
ti to va ve vi wa we wi yo za ze zi sch ck tt nn rd st ng
""".split()
EMOJI = """
😀 😂 🙂 😉 😍 😢 😡 👍 👎 🎉 ❤️ 🔥 ✅ ⚠️ 🚀 ☕ 🐶 🌧️
""".split()
FRAMES = """
See {0}. | Siehe {0}.
Visit {0} for more. | Mehr unter {0}.
Open {0} | {0} öffnen
Please open {0}. | Bitte öffnen Sie {0}.
Please visit {0} now. | Bitte besuchen Sie jetzt {0}.
Click {0} to continue. | Klicken Sie auf {0}, um fortzufahren.
Delete {0}? | {0} löschen?
Hello {0}, | Hallo {0},
Welcome back, {0}! | Willkommen zurück, {0}!
Save {0} as {1} | {0} als {1} speichern
{0} of {1} files | {0} von {1} Dateien
{0} has sent you {1}. | {0} hat Ihnen {1} geschickt.
Could not open {0}: {1} | {0} konnte nicht geöffnet werden: {1}
{0} is not a valid {1}. | {0} ist kein gültiger {1}.
Copy {0} to {1} | {0} nach {1} kopieren
From {0} to {1} | Von {0} bis {1}
Page {0} of {1} | Seite {0} von {1}
{0} and {1} like this. | {0} und {1} gefällt das.
Downloading {0} ({1}) | {0} wird heruntergeladen ({1})
Write to {0} if you need help. | Schreiben Sie an {0}, wenn Sie Hilfe brauchen.
Your code is {0}. | Ihr Code lautet {0}.
{0} items were deleted. | {0} Einträge wurden gelöscht.
Do you want to replace {0} with {1}? | Möchten Sie {0} durch {1} ersetzen?
Error {0}: {1} | Fehler {0}: {1}
Version {0} is available at {1}. | Version {0} ist unter {1} verfügbar.
Search in {0} | In {0} suchen
{0}, {1} and {2} | {0}, {1} und {2}
Please open {0} and visit {1} now. | Bitte öffnen Sie {0} und besuchen Sie jetzt {1}.
Send {0} to {1} by {2}. | Senden Sie {0} bis {2} an {1}.
Moved {0} from {1} to {2}. | {0} wurde von {1} nach {2} verschoben.
""".strip().splitlines()


def placeholder(chance: random.Random) -> str:
    """Return a variable, format specifier, URL or e-mail address."""
    word, other = chance.choice(WORDS), chance.choice(WORDS)
    site = "".join(chance.choices(SYLLABLES, k=chance.randint(2, 3)))
    domain = f"{site}.{chance.choice(['org', 'com', 'de', 'net', 'example', 'io'])}"
    forms = [
        f"{{{word}}}", f"{{{chance.randrange(4)}}}", "{}", f"{{{{{word}}}}}", f"{{{{ {word} }}}}", f"${{{word}}}",
        f"${{{word}.{other}}}", "%s", "%d", f"%{chance.randint(1, 3)}$s", f"%({word})s", "%@",
        f"%.{chance.randrange(4)}f",
        f"https://{domain}/{word}", f"https://www.{domain}/{word}/{other}?id={chance.randrange(1000)}", f"http://{domain}",
        f"www.{domain}", f"{word}@{domain}", f"{word}.{other}@{domain}",
    ]  # fmt: skip
    return chance.choice(forms)


def number(chance: random.Random) -> str:
    """Return digits that both languages write alike."""
    digits = str(chance.randint(2, 10 ** chance.choice([1, 1, 2, 2, 3, 4, 5, 6])))
    others = [
        f"{chance.randint(1, 23)}:{chance.randint(10, 59)}", f"{digits} %", f"#{digits}",
        f"{digits}.{chance.randrange(10)}", f"{chance.randint(1, 99)},{chance.randrange(1000):03d}",
    ]  # fmt: skip
    return chance.choice([digits] * 6 + others)


def number_in_tags(chance: random.Random) -> str:
    """Return a number between two tags."""
    tag = chance.choice(["b", "i", "em", "strong", "span", "code"])
    return f"<{tag}>{number(chance)}</{tag}>"


def name(chance: random.Random) -> str:
    """Return a made-up name, so that names which no corpus has are copied as well."""
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))).capitalize()


def shared_word(pair: Pair) -> str | None:
    """Return a capitalised word that each side has once and that is not merely alike: a name, as a rule."""
    words = [set(re.findall(r"\b[A-Z][a-z]+\b", side)) for side in pair]
    alike = sorted(word for word in words[0] & words[1] if all(side.count(word) == 1 for side in pair))
    return alike[0] if len(alike) == 1 and len(alike[0]) > 2 else None


def put(pair: Pair, word: str, replacement: str) -> Pair:
    """Replace the word on both sides."""
    source, target = (re.sub(rf"\b{word}\b", lambda _: replacement, side) for side in pair)
    return source, target


def with_placeholder(pair: Pair, chance: random.Random) -> Pair | None:
    """Put a placeholder in the place of a name."""
    word = shared_word(pair)
    return put(pair, word, placeholder(chance)) if word else None


def with_other_name(pair: Pair, chance: random.Random) -> Pair | None:
    """Put a made-up name in the place of a name, sometimes with a family name."""
    word = shared_word(pair)
    new = name(chance) if chance.random() < 0.7 else f"{name(chance)} {name(chance)}"
    return put(pair, word, new) if word else None


def with_number(pair: Pair, chance: random.Random) -> Pair | None:
    """Put new digits in the place of digits or of a number word that both sides have once."""
    found = re.findall(r"\b\d+\b", pair[0])
    if len(found) == 1 and re.findall(r"\b\d+\b", pair[1]) == found:
        return put(pair, found[0], str(chance.randint(2, 10 ** len(found[0]))))
    for english, german in (words.split("=") for words in NUMBER_WORDS):
        if all(len(re.findall(rf"\b{word}\b", side)) == 1 for word, side in zip((english, german), pair, strict=True)):
            digits = number(chance)
            return put((pair[0], ""), english, digits)[0], put(("", pair[1]), german, digits)[1]
    return None


def with_tag(pair: Pair, chance: random.Random) -> Pair | None:
    """Put tags around a name, or around the whole sentence."""
    tag = chance.choice(["b", "i", "em", "strong", "u", "code", "span", f'a href="/{chance.choice(WORDS)}"'])
    opening, closing = f"<{tag}>", f"</{tag.split()[0]}>"
    word = shared_word(pair)
    if word and chance.random() < 0.8:
        return put(pair, word, opening + word + closing)
    if chance.random() < 0.3:
        return f"{pair[0]}<br>", f"{pair[1]}<br>"
    return f"{opening}{pair[0]}{closing}", f"{opening}{pair[1]}{closing}"


def with_frame(pair: Pair, chance: random.Random) -> Pair | None:
    """Write one of our own sentences about placeholders, alone or after the pair."""
    frame = chance.choice(FRAMES).split(" | ")
    fillers = [chance.choice([placeholder, placeholder, number, name])(chance) for _ in range(3)]
    own = (frame[0].format(*fillers), frame[1].format(*fillers))
    return own if chance.random() < 0.6 else (f"{pair[0]} {own[0]}", f"{pair[1]} {own[1]}")


def with_addition(pair: Pair, chance: random.Random) -> Pair | None:
    """Add a placeholder in brackets or after a colon, before the final punctuation or after it."""
    thing = chance.choice([placeholder, placeholder, number])(chance)
    if pair[0][-1] not in ".!?" or pair[1][-1] not in ".!?":
        return None
    form = chance.choice([" ({})", ": {}", " [{}]"])
    source, target = (f"{side[:-1]}{form.format(thing)}{side[-1]}" for side in pair)
    return source, target


def with_insertion(pair: Pair, chance: random.Random) -> Pair | None:
    """Put one to three placeholders, numbers or numbers in tags between words, at the same share of both sides."""
    sides = [side.split() for side in pair]
    for _ in range(chance.randint(1, 3)):
        thing, share = chance.choice([placeholder, number, number_in_tags])(chance), chance.random()
        for words in sides:
            words.insert(int(share * len(words)), thing)
    return " ".join(sides[0]), " ".join(sides[1])


def in_small_letters(pair: Pair, chance: random.Random) -> Pair | None:
    """Write the source in small letters. Text in capitals is translated that way, and many people type that way."""
    return pair[0].lower(), pair[1]


def without_final_point(pair: Pair, chance: random.Random) -> Pair | None:
    """Drop the final full stop or exclamation mark of both sides; a question would lose its meaning."""
    if pair[0][-1] not in ".!" or pair[1][-1] not in ".!":
        return None
    source, target = pair[0][:-1], pair[1][:-1]
    if chance.random() < 0.2:
        source, target = source[0].lower() + source[1:], target
    return source, target


def with_typing_error(pair: Pair, chance: random.Random) -> Pair | None:
    """Drop, double or swap a letter inside a long word of the source."""
    words = list(re.finditer(r"[A-Za-z]{4,}", pair[0]))
    if not words:
        return None
    word = chance.choice(words)
    at = chance.randrange(word.start() + 1, word.end() - 1)
    kind = chance.randrange(3)
    middle = ["", pair[0][at] * 2, pair[0][at + 1] + pair[0][at]][kind]
    return pair[0][:at] + middle + pair[0][at + (2 if kind == 2 else 1) :], pair[1]


def in_quotes(pair: Pair, chance: random.Random) -> Pair | None:
    """Put both sides into quotation marks, each language in its own or both in straight ones."""
    marks = chance.choice([('"', '"', '"', '"'), ("“", "”", "„", "“"), ("'", "'", "'", "'")])
    return f"{marks[0]}{pair[0]}{marks[1]}", f"{marks[2]}{pair[1]}{marks[3]}"


def with_emoji(pair: Pair, chance: random.Random) -> Pair | None:
    """Add an emoji to both sides."""
    emoji = chance.choice(EMOJI)
    return f"{pair[0]} {emoji}", f"{pair[1]} {emoji}"


KINDS: dict[Callable[[Pair, random.Random], Pair | None], int] = {
    with_placeholder: 8, with_other_name: 5, with_number: 4, with_tag: 5, with_frame: 4, with_addition: 6,
    with_insertion: 15, in_small_letters: 8, without_final_point: 5, with_typing_error: 6, in_quotes: 2, with_emoji: 1,
}  # fmt: skip
"""How many of a hundred pairs of the corpus each kind makes."""
OF_THE_SOURCE = (with_typing_error, without_final_point, in_small_letters)
"""The kinds that treat the source in another way than the target."""


def augment(pairs: list[Pair], *, seed: int, share: float, reverse: bool = False) -> list[Pair]:
    """Return the new pairs: for each kind its number in a hundred of `pairs`, times `share`; `reverse` swaps them."""
    chance = random.Random(seed)
    made: list[Pair] = []
    for kind, percent in KINDS.items():
        wanted, order = int(len(pairs) * percent / 100 * share), chance.sample(range(len(pairs)), len(pairs))
        for index in order:
            if wanted == 0:
                break
            pair = pairs[index]
            swapped = reverse and kind in OF_THE_SOURCE
            if all(pair) and (new := kind(pair[::-1] if swapped else pair, chance)) is not None:
                made.append(new[::-1] if reverse and not swapped else new)
                wanted -= 1
    chance.shuffle(made)
    return made


def main() -> None:
    """Read the corpus, write the new pairs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", help="two aligned files, written train.en.gz,train.de.gz")
    parser.add_argument("--output", type=Path, required=True, help="a .tsv.gz file to write")
    parser.add_argument("--reverse", action="store_true", help="write the target first, for the other direction")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="how many pairs of each kind, relative to the default")
    options = parser.parse_args()
    sides = [gzip.decompress(Path(path).read_bytes()).decode().splitlines() for path in options.corpus.split(",")]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        sys.exit(f"{options.corpus}: give two files with the same number of lines, separated by a comma")
    made = augment(list(zip(*sides, strict=True)), seed=options.seed, share=options.share, reverse=options.reverse)
    with gzip.GzipFile(options.output, "wb", mtime=0) as file:
        for source, target in made:
            file.write(f"{source}\t{target}\n".encode())
    print(f"{len(made):,} pairs in {options.output}")


if __name__ == "__main__":
    main()
