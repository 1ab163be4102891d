"""The networks that the paper compares itself with, one file each; each implements `networks.network.Network`.

rnnsearch.py    recurrent encoder and decoder with additive attention, Bahdanau et al. 2015
"""
