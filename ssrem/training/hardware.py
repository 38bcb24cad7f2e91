"""How torch computes: on one thread, and in bfloat16 where the hardware has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: sums in the same order on every machine, and no oversubscription of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16: a CPU with AVX-512 BF16 or AMX, or a GPU with bfloat16."""
    if device.type == "cpu":
        known = torch.cpu.get_capabilities()
        return bool(known.get("avx512_bf16") or known.get("amx_bf16"))
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def precision(device: torch.device | None) -> AbstractContextManager[Any]:
    """Inside, products are of bfloat16 if the device has it; float32 for None."""
    if device is None or not has_bf16(device):
        return nullcontext()
    mixed: AbstractContextManager[Any] = torch.autocast(device.type, torch.bfloat16)
    return mixed
