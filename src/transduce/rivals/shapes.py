"""Shapes of the parameters of parts that several rivals share, without torch: what their configs are made of."""

from collections.abc import Sequence

from transduce.networks.config import Shapes, linear_shapes, named

TIES = {"none": (False, False), "inputs": (True, False), "all": (True, True)}
"""Whether source and target share a matrix, and whether the output shares it too."""


def require_one_width(tied: str, embedding: int, output: int, *, name: str) -> None:
    """Raise ValueError if one matrix would serve inputs and output of different widths."""
    if tied == "all" and embedding != output:
        raise ValueError(
            f'tied = "all" makes one matrix of the embeddings ({name} = {embedding}) and the output (output_width = '
            f'{output}). Set both to one width, or choose tied = "inputs".'
        )


def token_shapes(rows: int, widths: tuple[int, int], *, tied: str, source_rows: int | None = None) -> Shapes:
    """Return the parameters of `TokenMatrices`."""
    inputs_are_one, all_are_one = TIES[tied]
    return {
        "source_VE": (source_rows or rows, widths[0]),
        **({} if inputs_are_one else {"target_VE": (rows, widths[0])}),
        **({} if all_are_one else {"output_VO": (rows, widths[1])}),
    }


def gated_unit_shapes(inputs: int, width: int) -> Shapes:
    """Return the parameters of a `GatedUnit`."""
    return {
        **named("input", linear_shapes(inputs, 3 * width)),
        **named("gates", linear_shapes(width, 2 * width, bias=False)),
        **named("candidate", linear_shapes(width, width, bias=False)),
    }


def lstm_shapes(inputs: int, width: int) -> Shapes:
    """Return the parameters of an `LstmUnit`."""
    return {
        **named("input", linear_shapes(inputs, 4 * width)),
        **named("gates", linear_shapes(width, 4 * width, bias=False)),
    }


def lstm_stack_shapes(inputs: int, width: int, *, layers: int) -> Shapes:
    """Return the parameters of an `LstmStack`."""
    return named("units", numbered([lstm_shapes(width if layer else inputs, width) for layer in range(layers)]))


def additive_shapes(query: int, annotation: int, *, hidden: int) -> Shapes:
    """Return the parameters of an `AdditiveAttention`."""
    return {"v_A": (hidden,), "W_a.weight": (hidden, query), "U_a.weight": (hidden, annotation)}


def numbered(layers: Sequence[Shapes]) -> Shapes:
    """Return the parameters of a list of layers."""
    return {name: shape for number, layer in enumerate(layers) for name, shape in named(str(number), layer).items()}
