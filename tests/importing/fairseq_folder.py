"""A small folder of fairseq around a network of torch.nn, whose weights it saves under fairseq's names."""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

PIECES = ["the", "dog", "runs", "ca@@", "t", "der", "Hund", "läuft", "big@@", "ger", "madeupword0000"]
CODES = "#version: 0.2\nc a\nt h\nth e</w>\nd o\ndo g</w>\nr u\nru n\nrun s</w>\nb i\nbi g\ng e\nge r</w>\n"
SIZE, D, F, HEADS = 4 + len(PIECES), 16, 24, 4


class TorchTransformer(nn.Module):
    """The network of torch.nn, with sines then cosines from position 2 and embeddings times √d."""

    def __init__(self, *, pre_norm: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        options: dict[str, Any] = {"dropout": 0.0, "batch_first": True, "norm_first": pre_norm}
        encoder, decoder = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
        self.encoder = nn.ModuleList(encoder(D, HEADS, F, **options) for _ in range(2))
        self.decoder = nn.ModuleList(decoder(D, HEADS, F, **options) for _ in range(2))
        self.norms = nn.ModuleDict({n: nn.LayerNorm(D) if pre_norm else nn.Identity() for n in ("encoder", "decoder")})
        self.shared_VD = nn.Parameter(torch.randn(SIZE, D) / 4)
        for parameter in self.parameters():  # norms start as the identity, which would hide a wrong order
            if parameter.dim() == 1:
                nn.init.normal_(parameter, mean=1.0, std=0.3)
        self.eval()

    @torch.no_grad()
    def log_probabilities(self, source_S: list[int], target_T: list[int]) -> Tensor:
        memory_BSD, hidden_BTD = self._embedded(source_S), self._embedded([2, *target_T[:-1]])
        for layer in self.encoder:
            memory_BSD = layer(memory_BSD)
        memory_BSD = self.norms["encoder"](memory_BSD)
        visible = nn.Transformer.generate_square_subsequent_mask(len(target_T))
        for layer in self.decoder:
            hidden_BTD = layer(hidden_BTD, memory_BSD, tgt_mask=visible)
        logits_TV: Tensor = (self.norms["decoder"](hidden_BTD) @ self.shared_VD.T)[0]
        return logits_TV.log_softmax(-1)

    def _embedded(self, tokens: list[int]) -> Tensor:
        rates = 10000.0 ** (-torch.arange(D // 2) / (D // 2 - 1))
        angles = torch.arange(2, 2 + len(tokens))[:, None] * rates
        return (self.shared_VD[tokens] * 4.0 + torch.cat([angles.sin(), angles.cos()], dim=-1))[None]

    def fairseq_weights(self, *, is_old: bool = False) -> dict[str, Tensor]:
        """Return the weights under fairseq's names; old versions stack matrices of attention and number the norms."""
        found: dict[str, Tensor] = {}
        attentions = {"self_attn": "self_attn", "multihead_attn": "encoder_attn"}
        norms = {"encoder": ("self_attn", "final"), "decoder": ("self_attn", "encoder_attn", "final")}
        for stack, layers in (("encoder", self.encoder), ("decoder", self.decoder)):
            found[f"{stack}.embed_tokens.weight"] = self.shared_VD
            found[f"{stack}.version"] = torch.tensor([3.0])
            found[f"{stack}.embed_positions._float_tensor"] = torch.zeros(1)
            for kind, parameter in self.norms[stack].named_parameters():
                found[f"{stack}.layer_norm.{kind}"] = parameter
            for n, layer in enumerate(layers):
                for name, parameter in layer.named_parameters():
                    part, _, kind = name.partition(".")
                    own = attentions.get(part)
                    if own is not None and kind.startswith("in_proj") and not is_old:
                        for letter, third in zip("qkv", parameter.chunk(3), strict=True):
                            found[f"{stack}.layers.{n}.{own}.{letter}_proj.{kind.removeprefix('in_proj_')}"] = third
                    elif own is not None:
                        found[f"{stack}.layers.{n}.{own}.{kind}"] = parameter
                    elif part.startswith("norm") and is_old:
                        found[f"{stack}.layers.{n}.layer_norms.{int(part[4:]) - 1}.{kind}"] = parameter
                    elif part.startswith("norm"):
                        found[f"{stack}.layers.{n}.{norms[stack][int(part[4:]) - 1]}_layer_norm.{kind}"] = parameter
                    else:
                        found[f"{stack}.layers.{n}.{part.replace('linear', 'fc')}.{kind}"] = parameter
        return {name: tensor.detach() for name, tensor in found.items()}


def write_folder(folder: Path, network: TorchTransformer, *, is_old: bool = False, **options: object) -> None:
    """Write a checkpoint with `args`, or with `cfg` as since fairseq 0.10, the dictionaries and the codes."""
    folder.mkdir()
    stated: dict[str, object] = {"arch": "transformer_iwslt_de_en", "share_all_embeddings": True}
    for stack in ("encoder", "decoder"):
        stated |= {f"{stack}_layers": 2, f"{stack}_embed_dim": D, f"{stack}_ffn_embed_dim": F}
        stated |= {f"{stack}_attention_heads": HEADS, f"{stack}_learned_pos": False}
        stated[f"{stack}_normalize_before"] = not isinstance(network.norms["encoder"], nn.Identity)
    languages = {"source_lang": "en", "target_lang": "de"}
    namespace = argparse.Namespace(**{**stated, **(languages if is_old else {}), **options})
    settings = {"args": namespace} if is_old else {"args": None, "cfg": {"model": namespace, "task": languages}}
    weights = network.fairseq_weights(is_old=is_old)
    torch.save({**settings, "model": weights, "extra_state": {"epoch": 1}}, folder / "checkpoint_best.pt")
    for language in ("en", "de"):
        lines = [f"{piece} {9 - n}" if n < 9 else f"{piece} 0" for n, piece in enumerate(PIECES)]
        (folder / f"dict.{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "bpecodes").write_text(CODES, encoding="utf-8")
