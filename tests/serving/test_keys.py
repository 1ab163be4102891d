"""Keys: which open, which files are refused, and that comparing takes its time."""

import hmac
from pathlib import Path

import pytest

from transduce.errors import ConfigError
from transduce.serving.keys import Keys


def key_file(folder: Path, content: str) -> Path:
    file = folder / "keys"
    file.write_text(content, encoding="utf-8")
    return file


def test_only_keys_of_the_file_open(tmp_path: Path) -> None:
    keys = Keys(key_file(tmp_path, "# for the CMS\nfirst-key-0123456789\n\n  second-key-0123456789  \n"))
    assert keys.are_required
    assert keys.open_to("first-key-0123456789")
    assert keys.open_to("second-key-0123456789")
    for wrong in ("", "first-key-012345678", "first-key-01234567890", "# for the CMS", "\ud800"):
        assert not keys.open_to(wrong)


def test_without_a_file_no_key_is_needed() -> None:
    assert not Keys(None).are_required


def test_reading_again_rotates_and_a_bad_file_leaves_the_old_keys(tmp_path: Path) -> None:
    file = key_file(tmp_path, "first-key-0123456789\n")
    keys = Keys(file)
    key_file(tmp_path, "second-key-0123456789\n")
    keys.read_again()
    assert keys.open_to("second-key-0123456789")
    assert not keys.open_to("first-key-0123456789")
    key_file(tmp_path, "short\n")
    with pytest.raises(ConfigError, match=r"keys:1 is no key: a key has 16 characters or more"):
        keys.read_again()
    assert keys.open_to("second-key-0123456789")


@pytest.mark.parametrize(
    ("content", "fault"), [("\n# none\n", "holds no key"), ("two words in it, long\n", "no space")]
)
def test_a_file_without_keys_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        Keys(key_file(tmp_path, content))
    with pytest.raises(ConfigError, match="cannot be read"):
        Keys(tmp_path / "missing")


def test_every_key_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(key_file(tmp_path, "".join(f"key-number-{number:010d}\n" for number in range(5))))
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for given in ("key-number-0000000000", "key-number-0000000004", "x", "x" * 500):
        compared.clear()
        keys.open_to(given)
        # As many comparisons whether the first key fits or none, and all of one length whatever was given.
        assert compared == [(32, 32)] * 5
