"""Digests of weights, which keep the blocks of different models apart."""

import json
import shutil
import struct

from pando_kv._weights_digest import weights_digest


def safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, content in tensors.items():
        span = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "U8", "shape": [len(content)], "data_offsets": span}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensors():
    return {f"layer {n}": bytes([n]) * 100_000 for n in range(40)}


def test_weights_are_told_apart_by_any_tensor(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors(path, tensors())
    digests = {weights_digest(str(tmp_path))}
    for n in range(40):
        safetensors(path, tensors() | {f"layer {n}": b"x" * 100_000})
        digests.add(weights_digest(str(tmp_path)))
    assert len(digests) == 41


def test_a_copy_of_a_folder_has_the_same_weights(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    safetensors(folder / "model.safetensors", tensors())
    shutil.copytree(folder, tmp_path / "b")
    (tmp_path / "b" / "README.md").write_text("of no account")
    assert weights_digest(str(folder)) == weights_digest(str(tmp_path / "b")) != ""


def test_what_is_no_folder_with_weights_has_no_digest(tmp_path):
    assert weights_digest("organisation/model") == ""
    assert weights_digest(str(tmp_path)) == ""
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    assert weights_digest(str(tmp_path)) != ""
