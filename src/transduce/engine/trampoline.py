"""A call of whatever function begins at an address, with arguments that lie in memory; read when kernels compile."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from transduce.engine.calls import MOST_ARGUMENTS


@intrinsic
def call_at(typing_context, table, place):
    """Call the function whose address is table[place] with what follows there as its arguments, integers all."""

    def generate(context, builder, signature, arguments):
        long = ir.IntType(64)
        first = builder.gep(arguments[0], [arguments[1]])
        address, *values = (
            builder.load(builder.gep(first, [ir.Constant(long, number)])) for number in range(1 + MOST_ARGUMENTS)
        )
        function = ir.FunctionType(ir.VoidType(), [long] * MOST_ARGUMENTS).as_pointer()
        builder.call(builder.inttoptr(address, function), values)
        return context.get_dummy_value()

    return types.none(types.CPointer(types.int64), types.int64), generate
