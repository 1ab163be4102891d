"""Hugging Face's MarianMTModel (the paper's post-norm Transformer) in a plain training loop.

    python huggingface.py TASK_FOLDER {bf16|float32} {eager|sdpa}

transformers has no trainer command for translation, so the loop is ours: fused Adam, as its own Trainer takes by
default, and autocast for bf16. It is asked for its faster attention (bf16: eager, see the results).
"""

import contextlib
import sys
from pathlib import Path

from rounds import one_core, read_batches, read_task, serve

one_core()

import torch  # noqa: E402 - after the core is chosen
from torch.nn import functional  # noqa: E402
from transformers import MarianConfig, MarianMTModel  # noqa: E402


def main(folder: Path, precision: str, attention: str) -> None:
    """Load the model, then train on request."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    task, batches = read_task(folder), read_batches(folder)
    model = MarianMTModel._from_config(
        MarianConfig(
            vocab_size=task.vocabulary_size,
            d_model=task.d_model,
            encoder_layers=task.layers,
            decoder_layers=task.layers,
            encoder_ffn_dim=task.d_ff,
            decoder_ffn_dim=task.d_ff,
            encoder_attention_heads=task.heads,
            decoder_attention_heads=task.heads,
            dropout=task.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=1024,
            pad_token_id=0,
            eos_token_id=3,
            forced_eos_token_id=3,
            decoder_start_token_id=2,
            use_cache=False,
        ),
        attn_implementation=attention,
    )
    model.train()
    optimizer = torch.optim.Adam(
        model.parameters(), lr=task.rate, betas=(task.beta1, task.beta2), eps=task.epsilon, fused=True
    )

    def step(index: int) -> float:
        source, target = (torch.from_numpy(side) for side in batches[index])
        inputs = torch.cat([torch.full((target.size(0), 1), 2), target[:, :-1]], dim=1)
        context = torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()
        with context:
            logits = model(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=inputs).logits
            loss = functional.cross_entropy(
                logits.flatten(0, 1), target.flatten(), ignore_index=0, label_smoothing=task.label_smoothing
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss)

    serve(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
