"""The networks that the paper compares itself with, one file each; each implements `networks.network.Network`.

lstm.py            LSTM sequence to sequence without attention, Sutskever et al. 2014
rnnsearch.py       recurrent encoder and decoder with additive attention, Bahdanau et al. 2015
luong.py           LSTMs with multiplicative attention, Luong et al. 2015
gnmt.py            deep residual LSTMs with additive attention, Wu et al. 2016
convs2s.py         convolutions, and attention in every decoder layer, Gehring et al. 2017
bytenet.py         dilated convolutions without attention, Kalchbrenner et al. 2016
neural_gpu.py      gated convolutions over a whole state, Kaiser and Bengio 2016
memory_network.py  several hops of attention over single tokens, Sukhbaatar et al. 2015

recurrent.py       units, a stack of them and additive attention
convolutions.py    windows of neighbouring positions and maps of them
*_config.py        the sizes of each, without torch; shapes.py is what they share
matrices.py        embeddings, output and maps of several matrices
decoding_state.py  the state between two positions
"""
