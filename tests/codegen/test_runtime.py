"""Objects of the runtime: made once, found again without LLVM; another LLVM makes them again."""

import hashlib

from ...backends.host.pool_code import pool_ir
from ...backends.host.pool_words import CODE
from ...codegen import runtime
from ...codegen.cache import ObjectCache
from ...codegen.load import load
from ...codegen.runtime import runtime_object

TEXT = "define void @nothing() {\n  ret void\n}\n"


def test_the_pools_key_is_that_of_its_code():
    digest = hashlib.sha256(pool_ir().encode()).hexdigest()[: len(CODE)]
    assert digest == CODE, "the code of the pool has changed: write this digest into backends/host/pool_words.py"


def test_an_object_is_made_once_for_a_key_and_an_llvm(tmp_path, monkeypatch):
    made, cache = [], ObjectCache(tmp_path)

    def text() -> str:
        made.append(None)
        return TEXT

    first = runtime_object("one", text, cache)
    assert load([first]).address("nothing") and runtime_object("one", text, cache) == first and len(made) == 1
    assert runtime_object("two", text, cache) == first and len(made) == 2
    monkeypatch.setattr(runtime, "_llvm", lambda: "another")
    assert runtime_object("one", text, cache) == first and len(made) == 3
    assert runtime_object("one", text, None) == first and len(made) == 4
