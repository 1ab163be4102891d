"""The initial network of a run."""

from pathlib import Path

import torch

from transduce.experiment import ExperimentConfig
from transduce.model_directory import find_model, load_model
from transduce.networks.network import Network
from transduce.special_tokens import SpecialTokens
from transduce.torch_networks import new_network
from transduce.training.checkpoint import Checkpoints
from transduce.training.randomness import mixed_seed
from transduce.training.resumption import CHECKPOINTS_FOLDER


def first_network(experiment: ExperimentConfig, run: Path, tokens: SpecialTokens) -> Network:
    """Return the network with its initial weights: random, or those of the model that `training.start_from` names.

    If the run has a checkpoint, its weights are loaded later, so this does not read the model, which may be deleted.
    """
    torch.manual_seed(mixed_seed("weights", experiment.training.seed))
    network = new_network(experiment.model, tokens)
    start_from = experiment.training.start_from
    if start_from is None or Checkpoints(run / CHECKPOINTS_FOLDER).newest_whole() is not None:
        return network
    parameters = load_model(find_model(start_from)).parameters
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.from_numpy(parameters[name]))
    return network
