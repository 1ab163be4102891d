"""The paper's network with its backward pass written out, for training on a processor.

`model/` states the network and lets torch derive its gradient; here the same sub-layers are computed again with what
a processor is fast at, and every gradient is written beside its equation:

    pieces              what is saved against the derived gradient
    packing.py          tokens alone are computed, in one long row of tokens; padding exists inside attention only
    linear.py           weights are rounded and laid out once a step; a bias and a ReLU ride on the product
    dropout.py          one random word decides four numbers
    attention.py        one gather makes the heads of queries, keys and values; weights are kept in bf16
    residual.py         dropout, sum and norm in two passes over bf16
    feed_forward.py     the gradient of max(0, ·) is read off its own output
    network.py          the stacks, forward and backward
    fused_kernels.py    with numba, one pass over memory where torch makes several: kernel_sources.py, and kernels.py
                        tells whether

A part takes its inputs and returns its outputs with a `Pullback`: a function from the gradient with respect to the
outputs to the gradient with respect to the inputs, which also adds to the parameters' gradients on the way.

`handwritten` answers with the network that trains, or with None for a network that is not written out here. A test
proves that both compute the same hidden states and gradients, to 15 digits in float64. N counts the tokens of a whole
batch, I and O are a linear map's inputs and outputs, P counts the parts (queries, keys, values) that one product makes.
"""

from transduce.backpropagation.network import HandwrittenNetwork, handwritten

__all__ = ["HandwrittenNetwork", "handwritten"]
