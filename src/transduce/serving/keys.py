"""Who may use the server: keys from a file, compared in constant time."""

import hashlib
import hmac
from pathlib import Path

from transduce.errors import ConfigError

_SHORTEST = 16


class Keys:
    """The keys that open the server; only their hashes stay in memory. Without a file everybody may enter."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._digests: tuple[bytes, ...] = ()
        self.read_again()

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return self._file is not None

    def read_again(self) -> None:
        """Take the file's keys in place of the old; a file that is wrong leaves the old ones in force."""
        if self._file is None:
            return
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except OSError as fault:
            raise ConfigError(f"The key file {self._file} cannot be read: {fault.strerror}.") from None
        except UnicodeDecodeError:
            raise ConfigError(f"The key file {self._file} is no UTF-8 text.") from None
        numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
        keys = [(number, key) for number, key in numbered if key and not key.startswith("#")]
        if not keys:
            raise ConfigError(f"The key file {self._file} holds no key. Write one a line.")
        for number, key in keys:
            if len(key) < _SHORTEST or any(character.isspace() for character in key):
                raise ConfigError(
                    f"{self._file}:{number} is no key: a key has {_SHORTEST} characters or more and no space. "
                    'python3 -c "import secrets; print(secrets.token_urlsafe(32))" makes one.'
                )
        self._digests = tuple(_digest(key) for _, key in keys)

    def open_to(self, key: str) -> bool:
        """Tell whether a key is one of ours, in a time that does not depend on how much of it is right."""
        given = _digest(key)
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        return any(matches)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
