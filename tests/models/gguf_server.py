"""Serves a GGUF file with llama.cpp until its stdin closes, and prints the address; the real-model test runs it."""

from __future__ import annotations

import sys

import xllamacpp  # pyright: ignore[reportMissingImports]


def main(path: str, window: int) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = window
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
