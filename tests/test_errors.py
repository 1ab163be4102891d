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


def test_no_other_room_declares_errors_for_users() -> None:
    """An exception declared elsewhere would reach the user as a traceback."""
    kinds = {
        name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
    }
    kinds |= {"TransduceError", *CHILDREN}
    declared = [
        f"{file.relative_to(PACKAGE)}: {node.name}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if file != PACKAGE / "errors.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(base.id in kinds if isinstance(base, ast.Name) else False for base in node.bases)
    ]
    assert declared == []
