"""What every network offers to the floors above: training, search, inspection and model directories ask for this alone.

network.py             forward pass, output layer, decoding state, attention, matrices, cost
stepwise.py            what search needs of a model, in numpy
torch_stepper.py       a network of torch as such a model
output.py              the layer before the softmax
attention_block.py     the attention weights of a pair
attention_sublayer.py  sub-layers whose attention weights can be recorded
handled.py             which networks a capability handles: an allow-list
past.py                what a decoder layer keeps of the positions so far
initialization.py      how weights start out
cost.py                parameters, operations, sequential steps, path length
"""
