"""The doors of the house (docs/architecture.md, section 3) and its budgets, read from the source itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "transduce"
FILES = sorted(PACKAGE.rglob("*.py"))
EXECUTES_WHAT_IT_READS = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "torch.load", "eval", "exec"}
PRINTS = {"print", "typer", "rich"}
TOML = {"tomllib", "tomlkit"}
TORCHRUN = {"'RANK'", "'WORLD_SIZE'", "'LOCAL_RANK'", "'LOCAL_WORLD_SIZE'", "'MASTER_ADDR'", "'MASTER_PORT'"}


def names_used(code: str) -> Iterator[str]:
    """Yield what a module imports (by its first name), the functions it calls by name, and its texts, quoted."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module.partition(".")[0]
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)):
                yield f"{name}.{attribute}"
            case ast.Constant(value=str(text)):
                yield repr(text)


def test_the_reader_of_names_sees_each_kind() -> None:
    code = "import rich.table\nfrom pickle import loads\nprint(torch.load('RANK'))"
    assert {"rich", "pickle", "print", "torch.load", "'RANK'"} <= set(names_used(code))


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (EXECUTES_WHAT_IT_READS, ()),
        (PRINTS, ("cli",)),
        (TOML, ("experiment.py", "serving/config.py", "paper/")),
        (TORCHRUN, ("training/distributed.py",)),
    ],
    ids=[
        "nothing executes what it reads",
        "only cli prints",
        "only experiments, the paper's tables and the server's options are TOML",
        "torchrun's environment",
    ],
)
def test_a_door_is_used_by_its_room_alone(names: set[str], allowed: tuple[str, ...]) -> None:
    users = {
        f"{place}: {', '.join(found)}"
        for file in FILES
        if not (place := file.relative_to(PACKAGE).as_posix()).startswith(allowed)
        and (found := sorted(names.intersection(names_used(file.read_text(encoding="utf-8")))))
    }
    assert users == set()


def length(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_400_lines() -> None:
    files = [*FILES, *Path(__file__).parent.rglob("*.py"), *(PACKAGE.parents[1] / "demo_grammar").rglob("*.py")]
    assert {file.name: length(file) for file in files if length(file) > 400} == {}


def test_the_model_can_be_read_in_one_sitting() -> None:
    counting = {"cost.py", "parameters.py"}  # what follows from the sizes is no part of the network
    others = {"language_model.py", "language_model_config.py", "text_encoder.py", "text_encoder_config.py"}
    assert sum(length(file) for file in (PACKAGE / "model").glob("*.py") if file.name not in counting | others) < 1_300
