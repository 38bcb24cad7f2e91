"""A folder given with --encoder that brings code beside its safetensors: none of it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssrem.cli.main import main
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.warehouse.home import Warehouse
from support.tiny_transformer import write_bert, write_json


@pytest.mark.parametrize("model_type", ["bert", "own"])
def test_code_in_the_folder_of_an_encoder_does_not_run(
    home: Warehouse, tmp_path: Path, model_type: str, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = [
        {"conversation_id": f"c{n}", "speaker": f"p{(n + turn) % 4}", "text": f"the cat sat {n} {turn}"}
        for n in range(12)
        for turn in range(4)
    ]
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in talk))
    land(str(tmp_path / "dump.jsonl"), str(home.root), DumpSettings(speakers="person"))
    folder, mark = write_bert(tmp_path / "own"), tmp_path / "executed"
    for name in ("own", "__init__", "modeling_own", "bert", "transformers", "pickle"):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\nclass Own: pass\n")
    classes = {"AutoConfig": "own.Own", "AutoModel": "own.Own", "AutoTokenizer": ["own.Own", "own.Own"]}
    for file in ("config.json", "tokenizer_config.json"):
        about = json.loads((folder / file).read_text())
        changed = {"model_type": model_type} if file == "config.json" else {"tokenizer_class": "Own"}
        write_json(folder, file, {**about, **changed, "auto_map": classes})
    modules = [{"type": "own.Transformer", "path": ""}, {"type": "own.Pooling", "path": "1_Pooling"}]
    write_json(folder, "modules.json", modules)
    write_json(folder / "1_Pooling", "config.json", {"pooling_mode": "mean"})
    capsys.readouterr()  # transformers shows that it writes the model
    status = main(["tables", "--encoder", str(folder), "--home", str(home.root)])
    assert not mark.exists()
    published = [row for (row,) in home.query("SELECT DISTINCT corpus FROM candidates")]
    error = capsys.readouterr().err
    if status:
        assert error.splitlines()[-1].startswith(f"ssrem: model '{folder}'") and "Traceback" not in error
    assert published == [] if status else published == ["dump"]
    assert status == (model_type == "own")
