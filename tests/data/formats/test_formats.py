import json
from pathlib import Path

import pytest

from transduce.data.formats import Corpus, Pair, Selection
from transduce.data.formats.columns import choose_columns
from transduce.errors import DataError

EN_DE = Selection(source_language="en", target_language="de")


def read(path: Path, content: str, selection: Selection | None = None) -> list[tuple[str, str]]:
    path.write_bytes(content.encode())
    return [(pair.source, pair.target) for pair in Corpus(str(path), selection).pairs()]


class TestAligned:
    def write(self, folder: Path, source: str, target: str) -> str:
        (folder / "a.en").write_bytes(source.encode())
        (folder / "a.de").write_bytes(target.encode())
        return f"{folder / 'a.en'},{folder / 'a.de'}"

    def test_line_n_translates_line_n(self, tmp_path: Path) -> None:
        name = self.write(tmp_path, "one\ntwo\n\n", "eins\r\nzwei\r\n\r\n")
        assert list(Corpus(name).pairs()) == [Pair("one", "eins", 1), Pair("two", "zwei", 2), Pair("", "", 3)]

    def test_unequal_line_counts_name_both_files_and_the_first_blank_line(self, tmp_path: Path) -> None:
        name = self.write(tmp_path, "one\ntwo\nthree\n", "eins\n\nzwei\ndrei\n")
        with pytest.raises(
            DataError, match=r"a\.de has 4 lines but .*a\.en has 3\..*look first at .*a\.de:2, the first"
        ):
            list(Corpus(name).pairs())

    def test_unequal_line_counts_without_a_blank_line(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"a\.de has 1 lines but .*a\.en has 2\..*compare their ends"):
            list(Corpus(self.write(tmp_path, "one\ntwo", "eins")).pairs())

    def test_a_comma_may_belong_to_a_name(self, tmp_path: Path) -> None:
        (tmp_path / "a,b.en").write_text("one\n", encoding="utf-8")
        (tmp_path / "a,b.tsv").write_text("two\tzwei\n", encoding="utf-8")
        (tmp_path / "c.de").write_text("eins\n", encoding="utf-8")
        assert next(Corpus(f"{tmp_path / 'a,b.en'}, {tmp_path / 'c.de'}").pairs()) == Pair("one", "eins", 1)
        assert next(Corpus(str(tmp_path / "a,b.tsv")).pairs()) == Pair("two", "zwei", 1)

    def test_three_files_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="more than two files"):
            Corpus("a.en,a.de,a.fr")


class TestTsv:
    def test_a_tab_separates_and_nothing_quotes(self, tmp_path: Path) -> None:
        content = 'He said "no\t"Nein", sagte er\textra\nb;c,d\te\n'
        assert read(tmp_path / "x.tsv", content) == [('He said "no', '"Nein", sagte er'), ("b;c,d", "e")]

    def test_a_blank_line_is_an_empty_pair(self, tmp_path: Path) -> None:
        assert read(tmp_path / "x.tsv", "a\tb\n\n") == [("a", "b"), ("", "")]

    def test_a_missing_column_names_file_and_line(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"x\.tsv:2: column 2 is missing: this row has 1 \(a tab separates"):
            read(tmp_path / "x.tsv", "a\tb\nonly one\n")


class TestCsv:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_the_delimiter_is_found_and_quotes_are_understood(self, tmp_path: Path, delimiter: str) -> None:
        rows = [["source", "target"], ["a, b; c", "d"], ['say "x"', "e\nf"], ["g", "h;i,j\tk"]]
        content = "\r\n".join(
            delimiter.join('"' + cell.replace('"', '""') + '"' if set(cell) & set(',;\t\n"') else cell for cell in row)
            for row in rows
        )
        assert read(tmp_path / "x.csv", content) == [tuple(row) for row in rows[1:]]

    def test_commas_in_the_sentences_do_not_make_semicolons_commas(self, tmp_path: Path) -> None:
        content = "Yes, I do;Ja, doch\nNo;Nein, nein, nein\nWell, well;Na\nOh, no, no;Oh\n"
        assert read(tmp_path / "x.csv", content)[0] == ("Yes, I do", "Ja, doch")

    def test_semicolons_in_quotes_do_not_make_commas_semicolons(self, tmp_path: Path) -> None:
        assert read(tmp_path / "x.csv", '"a; b","c; d"\n"e; f","g; h"\n') == [("a; b", "c; d"), ("e; f", "g; h")]

    def test_excels_line_that_names_the_separator_is_obeyed(self, tmp_path: Path) -> None:
        path = tmp_path / "x.csv"
        path.write_text("sep=;\na,b;c,d\n", encoding="utf-8")
        assert list(Corpus(str(path)).pairs()) == [Pair("a,b", "c,d", 2)]

    def test_an_unclosed_quote_names_the_line_where_it_opens(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"x\.csv:3:1: the field that starts here is not valid CSV"):
            read(tmp_path / "x.csv", 'a,b\n"c\nd",e\n'.replace('"c\nd",e', 'c,d\n"e,f\ng,h'))

    @pytest.mark.parametrize(("record", "place"), [('c,"d"e', "2:3"), ('"c\nc","d', "3:4"), ('c,d\n,,"', "3:3")])
    def test_a_malformed_field_is_named_by_line_and_column(self, tmp_path: Path, record: str, place: str) -> None:
        with pytest.raises(DataError, match=rf"x\.csv:{place}: the field that starts here is not valid CSV"):
            read(tmp_path / "x.csv", f"a,b\n{record}\n")

    def test_rows_have_a_bounded_number_of_columns(self, tmp_path: Path) -> None:
        for name, delimiter in (("x.csv", ","), ("x.tsv", "\t")):
            with pytest.raises(DataError, match=rf"{name}:2: this row has more than 1,000 columns"):
                read(tmp_path / name, f"a{delimiter}b\n" + delimiter * 1001 + "\n")

    def test_a_line_number_counts_lines_and_not_records(self, tmp_path: Path) -> None:
        path = tmp_path / "x.csv"
        path.write_text('"a\nb",c\nd,e\n', encoding="utf-8")
        assert [pair.line for pair in Corpus(str(path)).pairs()] == [1, 3]

    def test_one_column_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"x\.csv:1: column 2 is missing"):
            read(tmp_path / "x.csv", "alone\n")


class TestJsonLines:
    @pytest.mark.parametrize(
        "record",
        [
            {"source": "a", "target": "b"},
            {"id": 7, "target": "b", "source": "a"},
            {"de": "b", "fr": "c", "en": "a"},
            {"de-AT": "b", "en_US": "a"},
            {"id": 7, "translation": {"de": "b", "en": "a"}},
        ],
    )
    def test_keys_are_found_by_name_or_language(self, tmp_path: Path, record: dict[str, object]) -> None:
        assert read(tmp_path / "x.jsonl", json.dumps(record) + "\n", EN_DE) == [("a", "b")]

    def test_without_languages_the_first_two_keys_are_the_pair(self, tmp_path: Path) -> None:
        content = '{"en": "a", "de": "b"}\n{"de": "d", "en": "c"}\n'
        assert read(tmp_path / "x.jsonl", content) == [("a", "b"), ("c", "d")]

    def test_null_is_empty(self, tmp_path: Path) -> None:
        assert read(tmp_path / "x.jsonl", '{"source": "a", "target": null}\n\n') == [("a", ""), ("", "")]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ('{"source": "a"', r"x\.jsonl:2:15: this line is not JSON"),
            ("[" * 100_000, r"x\.jsonl:2: this line is not JSON"),
            ('["a", "b"]', r"x\.jsonl:2: this line is not a JSON object"),
            ('{"source": "a"}', r"x\.jsonl:2: this object has no key 'target'; it has 'source'"),
            ('{"source": "a", "target": 5}', r"x\.jsonl:2: 'target' must be a string, but it is 5"),
            ('{"source": "a", "target": "\\ud800"}', r"x\.jsonl:2: 'target' holds half of a surrogate pair"),
        ],
    )
    def test_what_is_wrong_is_told_with_file_and_line(self, tmp_path: Path, line: str, message: str) -> None:
        with pytest.raises(DataError, match=message):
            read(tmp_path / "x.jsonl", '{"source": "a", "target": "b"}\n' + line + "\n")

    def test_an_object_with_one_key_is_no_pair(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="a pair needs two keys, but this object has 'text'"):
            read(tmp_path / "x.jsonl", '{"text": "a"}\n')


class TestColumns:
    @pytest.mark.parametrize(
        ("row", "selection", "expected"),
        [
            (["a", "b"], EN_DE, (0, 1, False)),
            (["source", "target"], Selection(), (0, 1, True)),
            (["id", "Target", " SOURCE "], Selection(), (2, 1, True)),
            (["de", "en"], EN_DE, (1, 0, True)),
            (["de-CH", "en_GB"], EN_DE, (1, 0, True)),
            (["en-US", "en", "de"], EN_DE, (1, 2, True)),
            (["x", "y", "z"], Selection(source_column="z", target_column="x"), (2, 0, True)),
            (["x", "y", "z"], Selection(source_column=3, target_column=1), (2, 0, False)),
            (["x", "de", "en"], Selection("en", "de", 3, 2), (2, 1, True)),
            (["x", "y", "z"], Selection(target_column=3), (0, 2, False)),
        ],
    )
    def test_the_pair_is_found(self, row: list[str], selection: Selection, expected: tuple[int, int, bool]) -> None:
        assert tuple(choose_columns(row, selection, location="x.tsv:1")) == expected

    @pytest.mark.parametrize(
        ("row", "selection", "message"),
        [
            (["en", "fr"], EN_DE, r"x\.tsv:1: .* but not the target's \(de\); it has 'en', 'fr'"),
            (["text", "target"], Selection(), "but not the source's; it has"),
            (["a", "b"], Selection(source_column="src"), "there is no column 'src'; the first row has 'a', 'b'"),
            (["a", "b"], Selection(source_column=2), "both source and target would be column 2"),
        ],
    )
    def test_what_cannot_be_settled_is_asked(self, row: list[str], selection: Selection, message: str) -> None:
        with pytest.raises(DataError, match=message):
            choose_columns(row, selection, location="x.tsv:1")


@pytest.mark.parametrize("name", ["notes.txt", "corpus", "a.gz"])
def test_one_file_of_no_known_kind_is_refused_with_the_forms_that_are_known(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"its ending is not a known format.*a\.en,a\.de.*\.tsv, \.csv, \.jsonl"):
        Corpus(str(tmp_path / name))


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(DataError, match="name of a corpus is empty"):
        Corpus(" ")
