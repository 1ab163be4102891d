"""API keys: which are accepted, which key files are refused, and comparison in constant time."""

import hmac
from pathlib import Path

import pytest

from transduce.errors import ConfigError
from transduce.serving.keys import Keys


def key_file(folder: Path, content: str) -> Path:
    file = folder / "keys"
    file.write_text(content, encoding="utf-8")
    return file


def test_only_keys_of_the_file_are_accepted(tmp_path: Path) -> None:
    keys = Keys(key_file(tmp_path, "# for the CMS\nfirst-key-0123456789\n\n  second-key-0123456789  \n"))
    assert keys.are_required
    assert keys.accept("first-key-0123456789")
    assert keys.accept("second-key-0123456789")
    for wrong in ("", "first-key-012345678", "first-key-01234567890", "# for the CMS", "\ud800"):
        assert not keys.accept(wrong)


def test_without_a_file_no_key_is_needed() -> None:
    assert not Keys(None).are_required


def test_reload_replaces_the_keys_and_a_bad_file_keeps_the_old_ones(tmp_path: Path) -> None:
    file = key_file(tmp_path, "first-key-0123456789\n")
    keys = Keys(file)
    key_file(tmp_path, "second-key-0123456789\n")
    keys.reload()
    assert keys.accept("second-key-0123456789")
    assert not keys.accept("first-key-0123456789")
    key_file(tmp_path, "short\n")
    with pytest.raises(ConfigError, match=r"keys:1 is not a key: a key has 16 characters or more"):
        keys.reload()
    assert keys.accept("second-key-0123456789")


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
        keys.accept(given)
        # The number and length of the comparisons do not depend on the key that is given.
        assert compared == [(32, 32)] * 5
