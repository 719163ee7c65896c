"""Every repair vector, compared byte for byte: with both backends, fed at once, byte by byte, and split in two at any
place.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import streamweld as sw

from tests.conftest import FULL
from tests.support.backends import using
from tests.support.harness import bytewise, policy_of
from tests.support.vector_files import chunks_of, is_broken, label, load

VECTORS = load("repair")
OF_A_DIALECT = [vector for vector in VECTORS if vector["file"] != "auto"]
CUTS = 12  # number of split positions, unless all are tried


def expected(vector: dict[str, Any]) -> bytes:
    """Return the expected bytes: the source (`same`), or a sequence of original blocks (by number), renamed blocks, and
    new frames.
    """
    chunks = chunks_of(vector)
    if vector["expect"].get("same"):
        return b"".join(chunks)
    out = []
    for one in vector["expect"]["out"]:
        if isinstance(one, int):
            out.append(chunks[one])
        elif one == "[DONE]":
            out.append(b"data: [DONE]\n\n")
        elif isinstance(one[0], int):
            *lines, blank = chunks[one[0]].splitlines(keepends=True)
            lines = [line for line in lines if not line.startswith(b"event:")]
            out.append(b"".join(lines) + b"event: " + one[1].encode() + blank * 2)
        else:
            name, body = one
            head = "" if name is None else f"event: {name}\n"
            out.append(f"{head}data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n".encode())
    return b"".join(out)


def repair(vector: dict[str, Any], pieces: list[bytes], **ask: Any) -> tuple[Any, ...]:
    options = {"seed": "vec", "source": vector["file"], "target": "same", **policy_of(vector.get("options", {}))}
    converter = sw.StreamConverter(**{**options, **ask})
    made = b"".join([converter.feed(piece) for piece in pieces])
    made += converter.close(broken=True) if is_broken(vector) else converter.close()
    assert converter.close() == b""
    error = None if converter.error is None else type(converter.error).__name__
    return made, converter.repaired, error, [d.code for d in converter.diagnostics]


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_whole(backend: str, vector: dict[str, Any]) -> None:
    with using(backend):
        made, repaired, error, codes = repair(vector, [b"".join(chunks_of(vector))])
    assert made.decode().split("\n\n") == expected(vector).decode().split("\n\n")
    wanted = vector["expect"]
    assert (repaired, error, codes) == (wanted["repaired"], wanted["error"], wanted["diagnostics"])


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_any_pieces(backend: str, vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    with using(backend):
        whole = repair(vector, [body])
        assert repair(vector, chunks_of(vector)) == whole
        assert repair(vector, bytewise(body)) == whole
        for place in range(1, len(body), max(1, len(body) // (200 if FULL and backend == "native" else CUTS))):
            assert repair(vector, [body[:place], body[place:]]) == whole, place


@pytest.mark.parametrize("vector", OF_A_DIALECT, ids=label)
def test_a_source_that_turns_out_to_speak_the_target(backend: str, vector: dict[str, Any]) -> None:
    chunks = chunks_of(vector)
    with using(backend):
        for pieces in (chunks, [b"".join(chunks)], bytewise(b"".join(chunks))):
            assert repair(vector, pieces, source="auto", target=vector["file"]) == repair(vector, chunks)


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_what_is_repaired_needs_no_repair(backend: str, vector: dict[str, Any]) -> None:
    with using(backend):
        first = repair(vector, [b"".join(chunks_of(vector))])
        again = repair({**vector, "options": {}, "end": None}, [first[0]])
    assert again[0] == first[0]
    assert again[1] is False
