"""Calls that torch does not offer: a bare capture, begun and ended by the driver's own functions (P4)."""

from __future__ import annotations

import ctypes

_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


def begin_capture(stream: int) -> None:
    """Begin a capture on a stream that is in none, so that whoever believes it is in one can end it.

    Args:
        stream: Handle of the stream, as `torch.cuda.Stream.cuda_stream`.

    Raises:
        RuntimeError: The driver refused; the text has its number.
        OSError: The driver's library cannot be loaded.
    """
    code = _library().cuStreamBeginCapture_v2(ctypes.c_void_p(stream), ctypes.c_int(_THREAD_LOCAL))
    if code:
        raise RuntimeError(f"the driver refused to begin a capture: error {code}")


def end_capture(stream: int) -> None:
    """End a capture, whatever it captured; nothing where the stream is in none. Errors: OSError, as of `begin_capture`."""
    graph = ctypes.c_void_p()
    code = _library().cuStreamEndCapture(ctypes.c_void_p(stream), ctypes.byref(graph))
    if not code and graph:
        _library().cuGraphDestroy(graph)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
