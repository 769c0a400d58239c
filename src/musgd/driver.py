"""The one call that torch does not offer: beginning a bare capture, by the driver's own function (P4)."""

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
    code = ctypes.CDLL("libcuda.so.1").cuStreamBeginCapture_v2(ctypes.c_void_p(stream), ctypes.c_int(_THREAD_LOCAL))
    if code:
        raise RuntimeError(f"the driver refused to begin a capture: error {code}")
