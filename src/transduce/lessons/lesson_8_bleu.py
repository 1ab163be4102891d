# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 8. Reading BLEU
#
#     BLEU = 100 · BP · (p_1 · p_2 · p_3 · p_4)^{1/4},   BP = min(1, e^{1 − r/c})
#
# p_n is the share of runs of n words that the reference has too; c and r are the lengths of outputs and references.

# %%
import math
from collections import Counter

from transduce.evaluation.protocols import detokenised
from transduce.evaluation.scores import score
from transduce.evaluation.significance import paired_bootstrap
from transduce.learning.laws import broken_by_bleu


def runs(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def bleu(outputs, references):
    pairs = [(output.split(), reference.split()) for output, reference in zip(outputs, references, strict=True)]
    logarithms = []
    for n in range(1, 5):
        matched = sum((runs(output, n) & runs(reference, n)).total() for output, reference in pairs)
        if matched == 0:
            return 0.0
        logarithms.append(math.log(matched / sum(runs(output, n).total() for output, _ in pairs)))
    c, r = sum(len(output) for output, _ in pairs), sum(len(reference) for _, reference in pairs)
    return 100 * min(1, math.exp(1 - r / c)) * math.exp(sum(logarithms) / 4)


assert broken_by_bleu(bleu) == []

# %% [markdown]
# Worked out by hand: matches 13, 10, 8, 6 of 14, 12, 10, 8, and BP = 0.8669.

# %%
outputs = ["the cat is on the mat .", "there is a rich ##AT##-##AT## text form"]
references = ["the cat is on the mat today .", "there is a rich ##AT##-##AT## text format here"]
assert math.isclose(bleu(outputs, references), 71.5574, abs_tol=1e-4)

# %% [markdown]
# ## Take it away: the brevity penalty
#
# Then a system that writes only what it is sure of wins.


# %%
def without_penalty(outputs, references):
    c = sum(len(output.split()) for output in outputs)
    r = sum(len(reference.split()) for reference in references)
    return bleu(outputs, references) / min(1, math.exp(1 - r / c))


assert "what is left out costs" in broken_by_bleu(without_penalty)

# %% [markdown]
# ## Misreadings
#
# The paper's 28.4 is on a scale from 0 to 100. The score of a test set is not the mean of the scores of its sentences:

# %%
some = ["the cat is on the mat .", "a dog plays here"]
right = ["the cat is on the mat .", "there is a dog that plays in the garden today"]
alone = [bleu([output], [reference]) for output, reference in zip(some, right, strict=True)]
assert alone == [100.0, 0.0]
assert not math.isclose(sum(alone) / 2, bleu(some, right), abs_tol=1)
bleu(some, right)

# %% [markdown]
# Report a score with its signature, and a difference with its p-value:

# %%
ours = ["The cat is on the mat.", "There is a dog in the garden.", "It rains a lot today."] * 20
theirs = ["The cat is on the mat.", "There is a dog in a garden.", "It rains today."] * 20
wanted = ["The cat is on the mat.", "There is a dog in the garden.", "It rains a lot today."] * 20
protocol = detokenised("en")
assert math.isclose(score(ours, [wanted], protocol=protocol)[0].value, 100)
assert "version" in score(ours, [wanted], protocol=protocol)[0].signature
difference = paired_bootstrap(theirs, ours, [wanted], protocol=protocol)[0]
assert difference.is_significant
difference

# %% [markdown]
# ## Exercises
#
# 1. Count a run as often as the output has it, without `&`. Which law breaks?
# 2. Take the arithmetic mean of the precisions. Which law breaks?
# 3. Find two right translations of one sentence with a BLEU of 0 against each other.


# %%
def mine(outputs, references):
    return bleu(outputs, references)  # change this


broken_by_bleu(mine)
