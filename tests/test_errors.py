"""The error tree: one place, one level, one line each."""

import ast
import builtins
import inspect
from pathlib import Path

from transduce import errors

PACKAGE = Path(errors.__file__).parent
CHILDREN = {"ConfigError", "DataError", "ModelError", "RunError", "TrainingError"}


def test_the_tree_is_one_level_deep() -> None:
    classes = dict(inspect.getmembers(errors, inspect.isclass))
    assert classes.keys() == {"TransduceError", *CHILDREN}
    assert errors.TransduceError.__bases__ == (Exception,)
    for name in CHILDREN:
        assert classes[name].__bases__ == (errors.TransduceError,)
        assert classes[name].__doc__


def test_the_message_is_all_that_is_shown() -> None:
    assert str(errors.DataError("train.de:7 is empty.")) == "train.de:7 is empty."


def test_an_error_declared_elsewhere_is_caught_in_its_own_room() -> None:
    """Otherwise it would reach the user as a traceback."""
    kinds = {
        name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    declared: dict[str, str] = {}
    caught: set[tuple[str, str]] = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and room != "errors.py":
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if bases & (kinds | {"TransduceError", *CHILDREN}):
                    declared[node.name] = room
            elif isinstance(node, ast.ExceptHandler) and node.type is not None:
                caught |= {(name.id, room) for name in ast.walk(node.type) if isinstance(name, ast.Name)}
    assert {name: room for name, room in declared.items() if (name, room) not in caught} == {}
