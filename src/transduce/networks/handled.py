"""Which networks a capability handles: an allow-list of the values of every option.

The handwritten gradient, the int8 engine and each export implement a network a second time. Each lists what it handles,
and declines any other kind of network and any other value of an option. An option that is not listed is handled only at
its default, which is the paper's choice.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from transduce.networks.config import NetworkConfig

Values = tuple[object, ...] | Literal["any"]
"""The values of an option that are handled; `any` is for sizes and probabilities, which their types bound already."""


@dataclass(frozen=True)
class Handled:
    """The networks that one capability handles."""

    kind: str
    options: Mapping[str, Values]

    def obstacle(self, config: NetworkConfig) -> str | None:
        """Return each option whose value is not handled, with that value, or None if there is no such option."""
        if config.kind != self.kind:
            return _described("kind", config.kind, (self.kind,))
        defaults = {name: (field.default,) for name, field in type(config).model_fields.items()}
        found = []
        for name, value in config:
            values = self.options.get(name, defaults.get(name, ()))
            if values != "any" and value not in values:
                found.append(_described(name, value, values))
        return "; ".join(found) or None


def _described(name: str, value: object, handled: tuple[object, ...]) -> str:
    return f"{name} = {_shown(value)} (only {' or '.join(map(_shown, handled)) or 'without it'})"


def _shown(value: object) -> str:
    return "not set" if value is None else json.dumps(value, default=str)
