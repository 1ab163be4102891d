"""The Transformer and the language model with a handwritten backward pass, for fast training on a CPU.

`model/` defines the network, and torch's autograd can compute its gradient. Here the same sub-layers are implemented
with operations that are fast on a CPU, and each module states the equations of its gradient:

    module              faster than autograd because
    packing.py          it computes no padding: all tokens of a batch form one matrix; only attention pads
    linear.py           it rounds and lays out the weights once a step; oneDNN adds bias and ReLU within the product
    dropout.py          it draws one random 64-bit word for four numbers
    attention.py        one gather splits queries, keys and values into heads; attention weights are stored in bf16
    residual.py         dropout, sum and norm take two passes over memory in bf16
    feed_forward.py     the gradient of max(0, ·) needs only its output
    stack.py            (a stack of layers, forward and backward)
    network.py          (the Transformer: two stacks)
    language_model.py   (the language model: one stack)
    fused_kernels.py    the C++ core makes one pass over memory where torch makes several

Each part returns its outputs and a `Pullback`: a function that maps the gradient of the outputs to the gradient of the
inputs and adds to the gradients of the parameters.

`handwritten` returns the network for training, or None for a network that this package does not implement. A test
checks that it computes the same hidden states and gradients as autograd, to 7 digits in float64.

Shapes here: N tokens of a whole batch, I inputs and O outputs of a linear map, P parts (queries, keys, values) of one
product, A = H·G the joined heads, L padded length.
"""

from transduce.backpropagation.language_model import HandwrittenLanguageModel
from transduce.backpropagation.network import HandwrittenNetwork, handwritten

__all__ = ["HandwrittenLanguageModel", "HandwrittenNetwork", "handwritten"]
