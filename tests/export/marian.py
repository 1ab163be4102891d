"""Marian's and Pegasus's network, written out from their documentation: the oracle for the Hugging Face directory."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


class Marian:
    """Marian's network as its documentation has it, one sentence at a time, from the exported files alone."""

    def __init__(self, folder: Path, *, epsilon: float) -> None:
        self.weights = load_file(folder / "model.safetensors")
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.epsilon = epsilon

    def logits(self, source_S: Tensor, target_T: Tensor) -> Tensor:
        start = torch.tensor([self.config["decoder_start_token_id"]])
        x, memory = self.embed(torch.cat([start, target_T[:-1]])), self.embed(source_S)
        for number in range(self.config["encoder_layers"]):
            memory = self.encode(f"model.encoder.layers.{number}", memory)
        memory = self.finish(memory, "model.encoder")
        for number in range(self.config["decoder_layers"]):
            x = self.decode(f"model.decoder.layers.{number}", x, memory)
        x = self.finish(x, "model.decoder")
        return x @ self.weights["model.shared.weight"].T + self.weights["final_logits_bias"][0]

    def encode(self, name: str, x: Tensor) -> Tensor:
        x = self.residual(x, f"{name}.self_attn", lambda x: self.attend(f"{name}.self_attn", x, x))
        return self.residual(x, f"{name}.final", lambda x: self.feed(name, x))

    def decode(self, name: str, x: Tensor, memory: Tensor) -> Tensor:
        x = self.residual(x, f"{name}.self_attn", lambda x: self.attend(f"{name}.self_attn", x, x, is_causal=True))
        x = self.residual(x, f"{name}.encoder_attn", lambda x: self.attend(f"{name}.encoder_attn", x, memory))
        return self.residual(x, f"{name}.final", lambda x: self.feed(name, x))

    def residual(self, x: Tensor, name: str, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.config["model_type"] == "pegasus":
            return x + sublayer(self.norm(x, f"{name}_layer_norm"))
        return self.norm(x + sublayer(x), f"{name}_layer_norm")

    def finish(self, x: Tensor, stack: str) -> Tensor:
        return self.norm(x, f"{stack}.layer_norm") if self.config["model_type"] == "pegasus" else x

    def embed(self, tokens: Tensor) -> Tensor:
        width = self.config["d_model"]
        angles = [[p / 10000 ** (2 * i / width) for i in range(width // 2)] for p in range(len(tokens))]
        positions = torch.tensor([[*map(math.sin, row), *map(math.cos, row)] for row in angles])
        scale = math.sqrt(width) if self.config["scale_embedding"] else 1.0
        return self.weights["model.shared.weight"][tokens] * scale + positions

    def linear(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def norm(self, x: Tensor, name: str) -> Tensor:
        width = (self.config["d_model"],)
        return functional.layer_norm(
            x, width, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], eps=self.epsilon
        )

    def feed(self, name: str, x: Tensor) -> Tensor:
        return self.linear(f"{name}.fc2", self.activate(self.linear(f"{name}.fc1", x)))

    def activate(self, x: Tensor) -> Tensor:
        by_name = {
            "relu": x.relu(),
            "gelu": functional.gelu(x),
            "gelu_pytorch_tanh": functional.gelu(x, approximate="tanh"),
            "quick_gelu": x * torch.sigmoid(1.702 * x),
            "silu": x * torch.sigmoid(x),
        }
        return by_name[self.config["activation_function"]]

    def attend(self, name: str, x: Tensor, memory: Tensor, *, is_causal: bool = False) -> Tensor:
        heads = self.config["encoder_attention_heads"]
        query, key, value = (
            self.linear(f"{name}.{side}_proj", given).unflatten(-1, (heads, -1)).transpose(0, 1)
            for side, given in (("q", x), ("k", memory), ("v", memory))
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
        return self.linear(f"{name}.out_proj", mixed.transpose(0, 1).flatten(start_dim=1))
