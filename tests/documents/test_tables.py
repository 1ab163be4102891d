"""Tables and JSON Lines: the target filled in, every other byte as it was."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.data.formats import Selection
from transduce.documents.filling import FillingReport
from transduce.errors import DataError

Fill = Callable[..., tuple[bytes, FillingReport]]


class TestTsv:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("a\t\r\nb\tB b\n\nc", "a\tA\r\nb\tB b\n\nc\tC"),
            ("id\ten\tde\tnote\n7\ta\t\tx\ty\n8\tb", "id\ten\tde\tnote\n7\ta\tA\tx\ty\n8\tb\tB"),
            ("de\ten\n\ta %s\n", "de\ten\nA %s\ta %s\n"),
            ("\ufeffsource\ttarget\nä\t\n", "\ufeffsource\ttarget\nä\tÄ\n"),
        ],
    )
    def test_only_empty_targets_change(self, fill: Fill, before: str, after: str) -> None:
        assert fill("x.tsv", before)[0].decode() == after

    def test_existing_targets_are_kept_unless_told_otherwise(self, fill: Fill) -> None:
        content, report = fill("x.tsv", "a\tx\nb\t\n")
        assert (content, report.filled, report.kept) == (b"a\tx\nb\tB\n", 1, 1)
        assert fill("x.tsv", "a\tx\nb\t\n", overwrites=True)[0] == b"a\tA\nb\tB\n"

    def test_a_translation_never_breaks_the_row(self, fill: Fill) -> None:
        assert fill("x.tsv", "a\t\n", answer=lambda text: "x\ty\nz")[0] == b"a\tx y z\n"

    def test_lost_placeholders_are_left_and_listed(self, fill: Fill, without_symbols: Callable[[str], str]) -> None:
        content, report = fill("x.tsv", "a %s\t\nb\t\n", answer=without_symbols)
        assert content == b"a %s\t\nb\tB\n"
        assert [(where.rpartition("/")[2], why, text) for where, why, text in report.left] == [
            ("x.tsv:1", "%s got lost", "a %s")
        ]


class TestCsv:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("en,de\r\na b,\r\nc,C c\r\n", "en,de\r\na b,A B\r\nc,C c\r\n"),
            ('id;source;target\n1;"a; ""b""";\n2;c', 'id;source;target\n1;"a; ""b""";"A; ""B"""\n2;c;C'),
            ('sep=;\na;""\n', 'sep=;\na;"A"\n'),
            ('"two\nlines","",x\n', '"two\nlines","TWO\nLINES",x\n'),
            ('en,de,x\n\na,"",1,5\n', 'en,de,x\n\na,"A",1,5\n'),
            ("en,de\na,", "en,de\na,A"),
        ],
    )
    def test_only_empty_targets_change(self, fill: Fill, before: str, after: str) -> None:
        assert fill("x.csv", before)[0].decode() == after

    def test_a_translation_that_needs_quotes_gets_them(self, fill: Fill) -> None:
        content, _ = fill("x.csv", "en,de\na,\n", answer=lambda text: 'x, "y"')
        assert content == b'en,de\na,"x, ""y"""\n'

    def test_columns_are_chosen_by_name_or_number(self, fill: Fill) -> None:
        for source, target in (("text", "german"), (2, 3), ("text", 3)):
            selection = Selection("en", "de", source, target)
            content, _ = fill("x.csv", "key,text,german\nk,a,\n", selection=selection)
            assert content == b"key,text,german\nk,a,A\n"

    @pytest.mark.parametrize(
        ("content", "hint"),
        [
            ("id,text\n1,a b\n2,c\n", "--source-column 'text' --target-column 3,"),
            ("key;text\nhello;a b\nbye;c\n", "--source-column 'text' --target-column 3,"),
            ("1,a b,\n2,c,\n", "--source-column '2' --target-column 4,"),
            ("menu.file,a b\nmsg_2,c\n\n", "--source-column '2' --target-column 3,"),
        ],
    )
    def test_a_first_column_of_keys_is_refused_with_the_options_that_name_the_right_one(
        self, fill: Fill, content: str, hint: str
    ) -> None:
        with pytest.raises(DataError, match=r"x\.csv:1: column 1 has numbers or keys, and column 2 has text") as caught:
            fill("x.csv", content)
        assert hint in str(caught.value)
        source, target = re.findall(r"column '?(\w+)'?", hint)
        selection = Selection("en", "de", int(source) if source.isdigit() else source, int(target))
        assert "A B" in fill("x.csv", content, selection=selection)[0].decode()

    @pytest.mark.parametrize(
        "content", ["red,\nblue,\n", "A-Level,\n", "1 car,\n2 cars,\n", "1,2\n3,4\n", "hello,a b\n"]
    )
    def test_a_first_column_that_may_be_text_is_translated(self, fill: Fill, content: str) -> None:
        fill("x.csv", content)

    @pytest.mark.parametrize(
        ("content", "place", "what"),
        [
            ('en,de\na,"b\nc,d\n', "2:3", "the quote is not closed"),
            ('en,de\n"a"b,\n', "2:4", "there is text after the closing quote"),
            ("a,b" + "," * 1000, "1:1", "more than 1,000 columns"),
        ],
    )
    def test_malformed_tables_are_refused_with_line_and_column(
        self, fill: Fill, content: str, place: str, what: str
    ) -> None:
        with pytest.raises(DataError, match=rf"x\.csv:{place}: .*{what}"):
            fill("x.csv", content)


class TestJsonLines:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ('{"source": "a", "target": ""}\n', '{"source": "a", "target": "A"}\n'),
            (
                '{ "source":"a" , "n":[1, {"target": ""}] }\r\n',
                '{ "source":"a" , "n":[1, {"target": ""}], "target": "A" }\r\n',
            ),
            ('{"de":null,"en":"ä"}\n\n', '{"de":"Ä","en":"ä"}\n\n'),
            ('{"en": "\\u00e4"}', '{"en": "\\u00e4", "de": "\\u00c4"}'),
            ('{"translation": {"en": "a"}, "x": 1.50}', '{"translation": {"en": "a", "de": "A"}, "x": 1.50}'),
            ('{"source": "a", "target": "x"}', '{"source": "a", "target": "x"}'),
        ],
    )
    def test_only_empty_targets_change(self, fill: Fill, before: str, after: str) -> None:
        assert fill("x.jsonl", before)[0].decode() == after

    @pytest.mark.parametrize("line", ['{"source": "a"', "[1]", '"{"', "[{}]"])
    def test_what_is_no_object_is_refused_with_its_line(self, fill: Fill, line: str) -> None:
        with pytest.raises(DataError, match=r"x\.jsonl:2:(\d+:)? this line is not a JSON object"):
            fill("x.jsonl", '{"source": "a"}\n' + line)


values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.text(max_size=4), values, max_size=4), min_size=1, max_size=4), st.booleans())
def test_any_other_member_stays_what_it_was(fill: Fill, records: list[dict[str, object]], ascii_only: bool) -> None:
    objects = [{**record, "source": "word", "target": ""} for record in records]
    for record in objects:
        record.pop("translation", None)
    content = "\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in objects)
    filled = [json.loads(line) for line in fill("x.jsonl", content)[0].decode().split("\n")]
    assert filled == [{**record, "target": "WORD"} for record in objects]
