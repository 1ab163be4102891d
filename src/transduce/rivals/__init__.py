"""The networks that the paper compares itself with, a file each, on the seam of `networks/`.

rnnsearch.py    recurrent encoder and decoder with additive attention, Bahdanau et al. 2015
"""
