"""API keys: read from a file, compared in constant time."""

import hashlib
import hmac
import logging
import os
import stat
from pathlib import Path

from transduce.errors import ConfigError
from transduce.serving.logs import log

_SHORTEST = 16


class Keys:
    """The keys that the server accepts, kept in memory as hashes. Without a key file no key is needed."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._digests: tuple[bytes, ...] = ()
        self.reload()

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return self._file is not None

    def reload(self) -> None:
        """Read the key file again; if it has an error, raise it and keep the old keys."""
        if self._file is None:
            return
        try:
            lines = self._file.read_text(encoding="utf-8-sig").splitlines()  # an editor may write a byte order mark
        except OSError as fault:
            raise ConfigError(f"The key file {self._file} cannot be read: {fault.strerror}.") from None
        except UnicodeDecodeError:
            raise ConfigError(f"The key file {self._file} is not UTF-8 text.") from None
        numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
        keys = [(number, key) for number, key in numbered if key and not key.startswith("#")]
        if not keys:
            raise ConfigError(f"The key file {self._file} holds no key. Write one key per line.")
        for number, key in keys:
            if len(key) < _SHORTEST or any(character.isspace() for character in key):
                raise ConfigError(
                    f"{self._file}:{number} is not a key: a key has {_SHORTEST} characters or more and no space. "
                    'python3 -c "import secrets; print(secrets.token_urlsafe(32))" makes one.'
                )
        self._digests = tuple(_digest(key) for _, key in keys)
        if os.name == "posix" and self._file.stat().st_mode & stat.S_IROTH:
            log("every user can read the key file", level=logging.WARNING, remedy=f"chmod o= {self._file}")

    def accept(self, key: str) -> bool:
        """Tell whether a key is valid, in a time that does not depend on how much of it is right."""
        given = _digest(key)
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        return any(matches)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
