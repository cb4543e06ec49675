"""What scripts/reproduce is made of: fits, figures, texts, and the document that is in the tree.

    reproduction_test.py SIMULATION_FOLDER DOCS_FOLDER
"""

import math
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SIMULATION, DOCS = (pathlib.Path(each) for each in sys.argv[1:3])
sys.path.insert(0, str(SIMULATION / "reproduction"))

# pylint: disable=wrong-import-position
import chart
import fit
import paper
import program
import text


class FitTest(unittest.TestCase):

    def test_finds_the_line_it_was_given(self):
        (constant, slope), quality = fit.least_squares([[1, x] for x in range(5)], [3 + 2 * x for x in range(5)])
        self.assertAlmostEqual(constant, 3)
        self.assertAlmostEqual(slope, 2)
        self.assertAlmostEqual(quality, 1)

    def test_says_how_bad_a_fit_is(self):
        # The best line through 0, 1, 0, 1 is 0.2 + 0.2 x: it explains a fifth.
        (constant, slope), quality = fit.least_squares([[1, x] for x in range(4)], [0, 1, 0, 1])
        self.assertAlmostEqual(constant, 0.2)
        self.assertAlmostEqual(slope, 0.2)
        self.assertAlmostEqual(quality, 0.2)

    def test_needs_its_pivots(self):
        self.assertEqual(fit.solve([[0, 1], [2, 0]], [3, 4]), [2, 3])


class TextTest(unittest.TestCase):

    def test_units(self):
        self.assertEqual([text.seconds(each) for each in (2.5, 0.25, 2.5e-4, 2e-8)], ["2.5 s", "250 ms", "250 µs", "0.02 µs"])
        self.assertEqual([text.tokens(each) for each in (64, 80_000, 5_120_000)], ["64", "80,000", "5,120,000"])
        self.assertEqual([text.size(each) for each in (12, 8320, 524_288_000, 1.04e9)], ["12 B", "8.32 kB", "524.3 MB", "1.04 GB"])

    def test_table(self):
        self.assertEqual(text.table(["a", "b"], [[1, 2]]), "| a | b |\n| --- | ---: |\n| 1 | 2 |")


class ChartTest(unittest.TestCase):

    def setUp(self):
        lines = {"tree": [(2, 1), (8, 100)], "ring": [(2, 10)], "tree, fit": [(2, 2), (8, 90)]}
        panels = [{"title": "one", "x_ticks": [2, 4, 8], "lines": lines}, {"title": "two", "x_ticks": [8], "lines": {"ring": [(8, 1)]}}]
        self.svg = chart.lines("A < B", "of C", panels, "ranks", "seconds")

    def test_is_xml_with_every_name_and_label(self):
        texts = [each.text for each in ElementTree.fromstring(self.svg).iter("{http://www.w3.org/2000/svg}text")]
        for expected in ("A < B", "of C", "one", "two", "tree", "ring", "tree, fit", "ranks", "seconds", "2", "4", "8", "10", "100"):
            self.assertIn(expected, texts)

    def test_is_readable_on_dark_pages(self):
        self.assertIn("prefers-color-scheme: dark", self.svg)
        self.assertIn('<rect class="paper"', self.svg)

    def test_strategies_look_as_the_programs_figures_do(self):
        style = (SIMULATION.parent / "src/plot/svg_style.cc").read_text(encoding="utf-8")
        markers = dict(re.findall(r'constexpr const char\* (k\w+) = "(M[^"]*)";', style))
        looks = [(light, dark, dashes, markers[marker])
                 for light, dark, dashes, marker in re.findall(r'\{"(#\w+)", "(#\w+)", "([^"]*)", (k\w+)\}', style)]
        names = re.search(r"kStrategyLooks = \{([^}]*)\}", (SIMULATION.parent / "src/cli/reports/decode_plot.cc").read_text(encoding="utf-8"))
        program_looks = dict(zip(re.findall(r'"([^"]+)"', names[1]), looks, strict=True))
        self.assertEqual(chart.LOOKS, {name: program_looks[name] for name in chart.LOOKS})

    def test_bars_are_as_long_as_their_values(self):
        svg = chart.bars("T", "S", [("group", [("half", "tree", 1), ("whole", "ring, pale", 2)])], "{} B".format)
        widths = [float(each) for each in re.findall(r'<rect class="m-[^>]* width="([\d.]+)"', svg)]
        self.assertEqual(widths, [210, 420])
        texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(texts, ["T", "S", "group", "half", "1 B", "whole", "2 B"])

    def test_points_lie_where_logarithms_put_them(self):
        path = re.search(r'class="line s-tree" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', self.svg)
        x0, y0, x1, y1 = map(float, path.groups())
        self.assertAlmostEqual(x1 - x0, 300)
        # 1 to 100 of an axis from 0.8 to 125, 240 high.
        self.assertAlmostEqual(y0 - y1, 240 * math.log(100) / math.log(125 / 0.8), delta=0.2)


class ProgramTest(unittest.TestCase):

    def test_keeps_what_was_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            first = program.Program("pando", folder, reuse=False)
            self.assertEqual(first.kept("x", lambda: [1]), [1])
            self.assertGreater(first.seconds, 0)
            self.assertEqual(len(first.dates), 1)
            self.assertEqual(program.Program("pando", folder, reuse=True).kept("x", lambda: [2]), [1])
            self.assertEqual(program.Program("pando", folder, reuse=False).kept("x", lambda: [3]), [3])


class DocumentTest(unittest.TestCase):
    """The document in the tree is a whole one."""

    def setUp(self):
        self.document = (DOCS / "reproduction.md").read_text(encoding="utf-8")

    def test_every_section_says_where_its_numbers_are_from(self):
        titles = re.findall(r"^## (.*)$", self.document, re.MULTILINE)
        self.assertGreaterEqual(len(titles), 6)
        for title in titles:
            self.assertRegex(title, "measured here|counted here|simulated")

    def test_has_every_row_of_the_paper(self):
        for entry in paper.TABLES:
            self.assertIn(entry["title"], self.document)
            for tree, ring in entry["seconds"].values():
                self.assertIn(f"| {tree:.2f} s | {ring:.2f} s |", self.document)

    def test_figures_are_there(self):
        for name in re.findall(r"\]\((figures/[^)]*\.svg)\)", self.document):
            ElementTree.parse(DOCS / name)

    def test_what_must_be_true(self):
        """The sentences that the numbers in the tree must bear out."""
        quality = re.search(r"\| weak, tree \|[^|]*\| ([\d.]+) \|", self.document)
        self.assertGreaterEqual(float(quality[1]), 0.98)
        worst = [float(each) for each in re.findall(r"([\d.]+) on `", self.document.split("takes at the worst")[1])]
        self.assertTrue(worst)
        self.assertLessEqual(max(worst), 1.10)
        hosts = {row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")]
                 for row in re.findall(r"^\| (?:tree|direct|paper|ring) \|.*$", self.document, re.MULTILINE)}
        ratios = {name: float(row[6]) for name, row in hosts.items()}
        self.assertTrue(1 / 1.5 <= ratios["ring"] <= 1.5, ratios)
        self.assertTrue(1 / 3 <= ratios["tree"] <= 3, ratios)
        self.assertEqual(set(hosts), {"tree", "direct", "paper", "ring"})
        for row in hosts.values():
            for cell in row[9:11]:
                measured, simulated = cell.split(" / ")
                self.assertEqual(measured, simulated, row)

    def test_says_where_and_when_it_was_measured(self):
        self.assertTrue(re.search(r"\*\*Measured here\*\* means: on one machine, \d+ cores of .+, on \d{4}-\d\d-\d\d", self.document))


if __name__ == "__main__":
    unittest.main(argv=["reproduction_test.py"])
