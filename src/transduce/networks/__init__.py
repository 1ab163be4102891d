"""The interface of all networks, which training, search, inspection and model directories use.

network.py             forward pass, output layer, decoding state, attention, matrices, cost
stepwise.py            the interface of a model for search, in numpy
torch_stepper.py       a torch network behind that interface
output.py              the layer before the softmax
attention_block.py     the attention weights of a pair
attention_sublayer.py  sub-layers whose attention weights can be recorded
handled.py             which networks a capability handles: an allow-list
past.py                the cache of one decoder layer: keys and values, or a recurrent state
initialization.py      initial weights
cost.py                parameters, operations, sequential steps, path length
"""
