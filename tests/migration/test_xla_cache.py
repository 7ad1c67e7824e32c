"""What XLA made is kept with its code, so the cache of it is for one user alone."""

import pytest

from ...codegen.private import UntrustedCache
from ...migration.xla_programs import _may_hold


def test_a_cache_that_others_may_write_holds_nothing(tmp_path):
    folder = tmp_path / "cache" / "xla" / "key"
    assert _may_hold(folder) and folder.parent.stat().st_mode & 0o777 == 0o700
    folder.mkdir(mode=0o700)
    assert _may_hold(folder)
    for path in (folder, folder.parent):
        path.chmod(0o777)
        with pytest.warns(UntrustedCache, match="may be written by others"):
            assert not _may_hold(folder)
        path.chmod(0o700)
    (tmp_path / "file").write_text("")
    assert not _may_hold(tmp_path / "file" / "xla" / "key")
