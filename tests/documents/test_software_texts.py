"""JSON and .properties: texts are translated in place; keys, code in texts, escapes and layout stay."""

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.documents.filling import FillingReport
from transduce.errors import DataError

TEXTS = st.text(st.sampled_from('a"\\/ü\u2028:{}'), max_size=4)
Fill = Callable[..., tuple[bytes, FillingReport]]


class TestJson:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ('{"a": "word", "b": {"c": "two words"}}', '{"a": "WORD", "b": {"c": "TWO WORDS"}}'),
            ('{\n\t"z.y" : "x" ,\n\t"n": 1.50,"ok":true\n}\n', '{\n\t"z.y" : "X" ,\n\t"n": 1.50,"ok":true\n}\n'),
            ('["one", ["two"], {"k": ["three"]}]', '["ONE", ["TWO"], {"k": ["THREE"]}]'),
            ('{"k": "see $t(other.key) now"}', '{"k": "SEE $t(other.key) NOW"}'),
            (
                '{"k_one": "{{count}} item", "k_other": "{{count, number}} items"}',
                '{"k_one": "{{count}} ITEM", "k_other": "{{count, number}} ITEMS"}',
            ),
            ('{"k": "go <1>there</1><br/>or {{name}}"}', '{"k": "GO <1>THERE</1><br/>OR {{name}}"}'),
            ('{"k": "{{name}}", "l": "https://example.org/", "m": ""}',) * 2,
            ('{"k": "\\u00e4 \\"x\\"", "l": "\\u00df{"}', '{"k": "\\u00c4 \\"X\\"", "l": "SS{"}'),
            ('{"k": "a\\/b ü"}', '{"k": "A/B Ü"}'),
            ('\ufeff{"k": "a"}', '\ufeff{"k": "A"}'),
        ],
    )
    def test_only_texts_change(self, fill: Fill, before: str, after: str) -> None:
        assert fill("x.json", before)[0].decode() == after

    def test_empty_values_of_a_catalogue_are_filled_in_from_their_keys(self, fill: Fill) -> None:
        before = '{"A long text.": "", "Another text.": "Schon da.", "Yes": ""}'
        content, report = fill("x.json", before)
        assert content.decode() == '{"A long text.": "A LONG TEXT.", "Another text.": "Schon da.", "Yes": "YES"}'
        assert (report.filled, report.kept) == (2, 1)

    def test_messages_with_forms_are_left_and_listed(self, fill: Fill) -> None:
        page = '{"k": "{n, plural, one {# dog} other {# dogs}}"}'
        content, report = fill("x.json", page)
        assert content.decode() == page
        assert [why for _, why, _ in report.left] == ["it has forms for numbers or cases, which a person must write"]

    @pytest.mark.parametrize(
        ("content", "place"),
        [('{\n  "a": "b"\n  "c": "d"}', "3:3"), ('{"a": "b}', "1:7"), ("[" * 100_000, "1:1"), ("", "1:1")],
    )
    def test_malformed_json_is_refused_with_line_and_column(self, fill: Fill, content: str, place: str) -> None:
        with pytest.raises(DataError, match=rf"x\.json:{place}: the file"):
            fill("x.json", content)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.recursive(
            st.one_of(
                st.none(), st.booleans(), st.floats(allow_nan=False), st.text(st.sampled_from('a"\\/ü\u2028:{}'))
            ),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
        ),
        st.sampled_from([None, 1, "\t"]),
        st.booleans(),
    )
    def test_a_model_that_changes_nothing_changes_nothing(
        self, fill: Fill, value: object, indent: object, ascii_only: bool
    ) -> None:
        content = json.dumps(value, indent=indent, ensure_ascii=ascii_only)  # type: ignore[arg-type]
        assert json.loads(fill("x.json", content, answer=lambda text: text)[0]) == json.loads(content)


class TestProperties:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (
                "# a comment\n! another\n\na.b = a word\nc:two\nd three words\n",
                "# a comment\n! another\n\na.b = A WORD\nc:TWO\nd THREE WORDS\n",
            ),
            ("a=one \\\r\n    two\r\nb=x\r\n", "a=ONE TWO\r\nb=X\r\n"),
            ("a\\ b\\=c = it\\\n", "a\\ b\\=c = IT\n".rstrip("\n")),
            ("a=\\u00e4 x\\tb\n", "a=\\u00c4 X\\tB\n"),
            ("a=ä x\n", "a=Ä X\n"),
            ("a=12\nb=\nc\n", "a=12\nb=\nc\n"),
            ("a={0} isn''t in {1,number}\n", "a={0} ISN''T IN {1,number}\n"),
            ("a=it isn't\n", "a=IT ISN'T\n"),
            ("a=see <b>this</b>\\n\\\n  now", "a=SEE <b>THIS</b>\\nNOW"),
            ("a=\\ud83d\\ude00 x\n", "a=\\ud83d\\ude00 X\n"),
            ("path=C:\\\\temp x\n", "path=C:\\\\TEMP X\n"),
        ],
    )
    def test_only_values_change(self, fill: Fill, before: str, after: str) -> None:
        assert fill("x.properties", before)[0].decode() == after

    def test_ascii_stays_ascii_and_latin_1_stays_latin_1(self, fill: Fill) -> None:
        assert fill("x.properties", b"a=x\n", answer=lambda text: "ßΩ")[0] == b"a=\\u00df\\u03a9\n"
        content, _ = fill("x.properties", b"# \xe4\na=x\n", answer=lambda text: "ßΩ")
        assert content == b"# \xe4\na=\xdf\\u03a9\n"

    @pytest.mark.parametrize("value", ["{0,choice,0#none|1#one}", "'{'0'}' {1} x"])
    def test_values_that_need_a_person_are_left(self, fill: Fill, value: str) -> None:
        content, report = fill("x.properties", f"a={value}\n")
        assert content.decode() == f"a={value}\n"
        assert len(report.left) == 1

    def test_a_bad_escape_is_refused_with_line_and_column(self, fill: Fill) -> None:
        with pytest.raises(DataError, match=r"x\.properties:2:5: \\u needs four hexadecimal digits"):
            fill("x.properties", "a=x\nb=ä \\u12g4\n")
