"""The interface of all networks, which training, search, inspection and model directories use.

config.py              sizes, and what follows from them: shapes of parameters, cost
network.py             forward pass, output layer, decoding state, attention, matrices
stepwise.py            the interface of a model for search, in numpy
torch_stepper.py       a torch network behind that interface
beam_searching.py      the interface of a model that runs beam search itself
log_probabilities.py   log p of target tokens
output.py              the layer before the softmax
attention_block.py     the attention weights of a pair
attention_axes.py      what the axes of these weights are
attention_sublayer.py  sub-layers whose attention weights can be recorded
handled.py             which networks a capability handles: an allow-list
past.py                the cache of one decoder layer: keys and values, or a recurrent state
initialization.py      initial weights
cost.py                parameters, operations, sequential steps, path length
"""
