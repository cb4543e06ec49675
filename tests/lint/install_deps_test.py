"""scripts/install-deps, with stand-ins for dpkg, apt, sudo and id that write down what they are asked."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ["bash", "env", "cat"]


class Machine:
    """A folder of programs that is the whole PATH."""

    def __init__(self, folder, missing=(), root=True, sudo=True, apt=True, update_works=True, install_works=True):
        self.bin = pathlib.Path(folder)
        self.log = self.bin / "log"
        for tool in TOOLS:
            (self.bin / tool).symlink_to(f"/bin/{tool}" if os.path.exists(f"/bin/{tool}") else f"/usr/bin/{tool}")
        self.program("id", "echo 0" if root else "echo 1000")
        self.program("dpkg-query", f'for p in {" ".join(missing)} ""; do [[ "${{@: -1}}" == "$p" ]] && exit 1; done\n'
                                   "echo -n installed")
        if apt:
            self.program("apt-get", f'echo "apt-get $*" >> {self.log}\n'
                                    f'[[ "$*" == *update* ]] && exit {0 if update_works else 100}\n'
                                    f"exit {0 if install_works else 100}")
        if sudo:
            self.program("sudo", f'echo sudo >> {self.log}\nexec "$@"')

    def program(self, name, body):
        file = self.bin / name
        file.write_text(f"#!/bin/bash\n{body}\n")
        file.chmod(0o755)

    def install_deps(self, *args):
        run = subprocess.run([ROOT / "scripts/install-deps", *args], env={"PATH": str(self.bin)}, capture_output=True,
                             text=True, check=False)
        asked = self.log.read_text().splitlines() if self.log.exists() else []
        return run, asked


class InstallDepsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_is_silent_when_nothing_is_missing(self):
        run, asked = Machine(self.folder).install_deps("test")
        self.assertEqual((run.returncode, run.stdout, run.stderr, asked), (0, "", "", []))

    def test_installs_only_what_is_missing(self):
        run, asked = Machine(self.folder, missing=["ninja-build", "libfmt-dev"]).install_deps()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(asked, ["apt-get -qq update",
                                 "apt-get -qq install --yes --no-install-recommends ninja-build libfmt-dev"])

    def test_the_build_does_not_need_what_only_tests_need(self):
        missing = ["python3", "python3-pip", "libsimgrid-dev", "iproute2", "libgtest-dev", "libgmock-dev",
                   "librapidcheck-dev", "clang-format-14", "clang-tidy-14", "clang-14", "libclang-rt-14-dev", "mpich",
                   "libmpich-dev", "python3-jsonschema"]
        run, asked = Machine(self.folder, missing=missing).install_deps("build")
        self.assertEqual((run.returncode, asked), (0, []))
        run, asked = Machine(tempfile.mkdtemp(dir=self.folder), missing=missing).install_deps("test")
        self.assertTrue(asked[-1].endswith(" ".join(missing)), asked)

    def test_fetching_the_model_takes_pip(self):
        run, asked = Machine(self.folder, missing=["python3-pip", "libgtest-dev"]).install_deps("model")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(asked[-1].endswith("--no-install-recommends python3-pip"), asked)

    def test_asks_for_root_where_it_is_not(self):
        run, asked = Machine(self.folder, missing=["cmake"], root=False).install_deps()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(asked[::2], ["sudo", "sudo"])

    def test_says_what_to_do_where_it_cannot_be_root(self):
        run, asked = Machine(self.folder, missing=["cmake"], root=False, sudo=False).install_deps()
        self.assertEqual((run.returncode, asked), (1, []))
        self.assertIn("as root, run: apt-get install cmake", run.stderr)

    def test_says_so_where_apt_fails(self):
        run, _ = Machine(self.folder, missing=["cmake"], install_works=False).install_deps()
        self.assertEqual(run.returncode, 1)
        self.assertIn("could not install these packages", run.stderr)

    def test_installs_from_old_lists_where_they_cannot_be_refreshed(self):
        run, asked = Machine(self.folder, missing=["cmake"], update_works=False).install_deps()
        self.assertEqual(run.returncode, 0)
        self.assertIn("could not refresh", run.stderr)
        self.assertTrue(asked[-1].endswith("cmake"))

    def test_names_the_packages_where_there_is_no_apt(self):
        run, _ = Machine(self.folder, apt=False).install_deps()
        self.assertEqual(run.returncode, 1)
        self.assertIn("libhwloc-dev", run.stderr)

    def test_refuses_a_set_it_does_not_know(self):
        run, asked = Machine(self.folder).install_deps("all")
        self.assertEqual((run.returncode, asked), (1, []))
        self.assertIn("'build', 'model', 'simulation' and 'test'", run.stderr)


if __name__ == "__main__":
    unittest.main()
