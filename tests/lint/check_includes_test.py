"""scripts/check-includes goes red on what the dependency table forbids, and only there."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(path, *includes):
    """The checker's exit code and output on a tree with one file of these #include lines."""
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root, path)
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"#include {include}\n" for include in includes))
        run = subprocess.run([sys.executable, ROOT / "scripts/check-includes", "--root", root],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout


class CheckIncludesTest(unittest.TestCase):

    def assert_allowed(self, path, *includes):
        code, output = check(path, *includes)
        self.assertEqual((code, output), (0, ""))

    def assert_forbidden(self, path, include, beside="<vector>"):
        code, output = check(path, beside, include)
        self.assertEqual(code, 1)
        self.assertTrue(output.startswith(f"{path}:2: "), output)

    def test_follows_the_table(self):
        self.assert_allowed("src/base/a.cc", "<vector>", "<sys/mman.h>", "<fmt/format.h>", '"pando/status.h"',
                            '"src/base/b.h"')
        self.assert_allowed("src/kernels/simd/a.cc", "<hwy/highway.h>", '"src/kernels/b.h"', '"src/base/b.h"')
        for module in ["kernels", "kv_cache", "reduction", "transport", "topology", "base"]:
            self.assert_allowed("src/attention/a.cc", f'"src/{module}/b.h"')
        for module in ["attention", "gguf", "kernels", "base"]:
            self.assert_allowed("src/model/a.cc", f'"src/{module}/b.h"')
        self.assert_allowed("src/engine/a.cc", '"src/tokenizer/b.h"', '"src/model/b.h"')
        self.assert_allowed("src/cli/a.cc", "<CLI/CLI.hpp>", "<nlohmann/json.hpp>", '"src/attention/b.h"')
        self.assert_allowed("src/transport/mpi/a.cc", "<mpi.h>")
        self.assert_allowed("tests/attention/a.cc", '"src/attention/b.h"', "<gtest/gtest.h>")

    def test_a_module_does_not_look_up(self):
        self.assert_forbidden("src/base/a.h", '"src/kernels/b.h"')
        self.assert_forbidden("src/kernels/a.cc", '"src/kv_cache/b.h"')
        self.assert_forbidden("src/reduction/a.cc", '"src/kernels/b.h"')
        self.assert_forbidden("src/topology/a.cc", '"src/reduction/b.h"')
        self.assert_forbidden("src/attention/a.cc", '"src/model/b.h"')
        self.assert_forbidden("src/tokenizer/a.cc", '"src/gguf/b.h"')
        self.assert_forbidden("src/engine/a.cc", '"src/cli/b.h"')
        self.assert_forbidden("src/engine/a.cc", '"src/bench/b.h"')
        self.assert_forbidden("src/planning/a.cc", '"src/attention/b.h"')

    def test_few_look_inside_a_communicator(self):
        self.assert_allowed("src/attention/a.cc", '"src/ranks/communicator_state.h"')
        self.assert_allowed("src/engine/a.cc", '"src/ranks/rank_access.h"')
        self.assert_forbidden("src/engine/a.cc", '"src/ranks/communicator_state.h"')

    def test_tests_follow_the_table_of_their_module(self):
        self.assert_allowed("src/base/a_test.cc", "<gtest/gtest.h>", "<gmock/gmock.h>", "<rapidcheck/gtest.h>",
                            "<rapidcheck.h>")
        self.assert_forbidden("src/base/a_test.cc", '"src/attention/b.h"')
        self.assert_forbidden("src/base/a.cc", "<gtest/gtest.h>")
        self.assert_forbidden("src/base/a.h", "<rapidcheck.h>")

    def test_only_tests_include_what_tests_share(self):
        self.assert_allowed("src/kernels/a_test.cc", '"src/base/testing/b.h"')
        self.assert_allowed("src/base/testing/a.cc", '"src/base/testing/a.h"', "<gtest/gtest.h>")
        self.assert_forbidden("src/kernels/a.cc", '"src/base/testing/b.h"')
        self.assert_forbidden("src/base/testing/a.h", '"src/kernels/b.h"')

    def test_public_headers_stand_alone(self):
        self.assert_allowed("include/pando/a.h", "<span>", '"pando/status.h"')
        for include in ['"src/base/b.h"', "<fmt/format.h>", "<hwy/highway.h>", "<mpi.h>", "<immintrin.h>", "<unistd.h>"]:
            self.assert_forbidden("include/pando/a.h", include)

    def test_c_has_the_headers_of_c(self):
        self.assert_allowed("include/pando/pando.h", "<stddef.h>", "<stdint.h>")
        self.assert_allowed("examples/a.c", "<stdio.h>", "<pando/pando.h>")
        for path in ["include/pando/pando.h", "examples/a.c"]:
            self.assert_forbidden(path, "<cstdint>", beside="<stddef.h>")
            self.assert_forbidden(path, '"src/base/b.h"', beside="<stddef.h>")
        self.assert_forbidden("include/pando/pando.h", "<unistd.h>", beside="<stddef.h>")
        self.assert_forbidden("include/pando/a.h", "<stdint.h>")
        self.assert_forbidden("src/base/a.cc", "<stdint.h>")

    def test_third_party_stays_in_its_folder(self):
        self.assert_forbidden("src/cli/a.cc", "<hwy/targets.h>")
        self.assert_forbidden("src/base/a.cc", "<immintrin.h>")
        self.assert_forbidden("src/kernels/a.cc", "<hwloc.h>")
        self.assert_forbidden("src/transport/a.cc", "<mpi.h>")
        self.assert_forbidden("src/attention/a.cc", "<CLI/CLI.hpp>")
        self.assert_forbidden("src/attention/a.cc", "<boost/any.hpp>")

    def test_users_of_the_library_see_the_public_headers_only(self):
        self.assert_allowed("examples/a.cc", '"pando/status.h"', "<pando/status.h>")
        self.assert_forbidden("examples/a.cc", '"src/base/b.h"')

    def test_paths_are_whole(self):
        self.assert_forbidden("src/base/a.cc", '"b.h"')
        self.assert_forbidden("src/base/a.cc", '"../base/b.h"')
        self.assert_forbidden("src/base/a.cc", '"base/b.h"')

    def test_a_folder_must_be_in_the_table(self):
        code, output = check("src/utils/a.cc", "<vector>")
        self.assertEqual(code, 1)
        self.assertIn("src/utils/a.cc", output)

    def test_an_empty_tree_is_not_a_pass(self):
        with tempfile.TemporaryDirectory() as root:
            run = subprocess.run([sys.executable, ROOT / "scripts/check-includes", "--root", root], check=False,
                                 capture_output=True)
            self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
