"""Serves a GGUF file with llama.cpp until its stdin closes, and prints the address; the real-model test runs it."""

from __future__ import annotations

import sys

import xllamacpp  # pyright: ignore[reportMissingImports]


def main(path: str, window: int, letters: int = 0) -> None:
    """`letters`: the longest answer, after which the model ends by itself. A very small one often does not."""
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = window
    params.n_parallel = 1
    params.warmup = False
    params.sampling.temp = 0.0  # the same answer every time
    if letters:
        rule = params.sampling.grammar
        rule.type = int(xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER)
        rule.grammar = f"root ::= [A-Za-z ,.!]{{1,{letters}}}"
        params.sampling.grammar = rule
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
