"""Calls one executable from several threads at the same time; each call has an arena of its own.

Run: python examples/call_from_threads.py
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import testbed
from testbed import XlaBuilder, ops


def main() -> None:
    b = XlaBuilder("norms")
    x = ops.parameter(b, 0, "f32[64,1024]", "x")
    squares = ops.reduce(x * x, 0.0, ops.add, [1])
    executable = testbed.compile(b.build(ops.sqrt(squares)))
    batches = [np.full((64, 1024), n, np.float32) for n in range(16)]
    with ThreadPoolExecutor(4) as pool:
        for n, norms in enumerate(pool.map(executable, batches)):
            np.testing.assert_allclose(norms, n * 32, rtol=1e-6)
    print(f"{len(batches)} batches on 4 threads")


if __name__ == "__main__":
    main()
