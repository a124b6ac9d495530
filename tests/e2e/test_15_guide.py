"""The user guide (docs/guide/build.py): every command is in it, no link leads nowhere, nothing is asked of the network."""
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from harness import cluster as harness

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "docs/guide/build.py"


def build(out, *options):
    return subprocess.run([sys.executable, str(BUILD), "--ringshift", str(harness.RINGSHIFT), "--out", str(out), *options],
                          text=True, capture_output=True, timeout=120)


class Document(HTMLParser):
    """What a browser would take from a page: ids, links, and what it loads by itself."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            assert given["id"] not in self.ids, f"two elements with the id '{given['id']}'"
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and "href" in given:
            self.loads.append(given["href"])
        for name in ("src", "srcset", "poster", "data"):
            if name in given:
                self.loads.append(given[name])


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    out = tmp_path_factory.mktemp("guide") / "docs"
    done = build(out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def pages(guide):
    return {path.name: Document(path) for path in guide.glob("*.html")}


def commands():
    """Every command by what the shell's completion knows: it is made from the program, and not from --help."""
    script = harness.run("completion", "bash", check=0).stdout
    return re.findall(r"^    ' ([^']+)'\) commands=", script, re.M)


def test_every_command_is_in_it(guide):
    found = commands()
    assert {"serve", "resize start", "completion zsh"} <= set(found)
    for command in found:
        page = guide / f"cli-{command.split()[0]}.html"
        assert page.is_file(), f"'ringshift {command}' has no page"
        text = re.sub(r"<[^>]+>", "", page.read_text())
        assert f"Usage: ringshift {command} [OPTIONS]" in text, f"{page.name} has no --help of 'ringshift {command}'"
        assert f'href="{page.name}"' in (guide / "index.html").read_text(), f"{page.name} is not in the menu"


def test_every_document_is_in_it(guide, pages):
    for path in (ROOT / "docs").glob("*.md"):
        assert f"{path.stem.lower()}.html" in pages, f"docs/{path.name} has no page"
    assert {"index.html", "readme.zh-cn.html", "changelog.html"} <= set(pages)


def test_no_link_leads_nowhere(guide, pages):
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = unquote(parts.path) or name
            assert (guide / target).is_file(), f"{name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{name}: {link}"


def test_it_loads_nothing_from_elsewhere(guide, pages):
    for name, page in pages.items():
        for source in page.loads:
            assert urlsplit(source).scheme in ("", "data") and not urlsplit(source).netloc, f"{name} loads {source}"
            assert source.startswith("data:") or (guide / unquote(source)).is_file(), f"{name} loads {source}, which is not there"
    for path in (guide / "guide.css", guide / "guide.js", *guide.glob("files/**/*.svg")):
        assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttp|import\(|href=\"http", path.read_text()), path.name


def test_nothing_of_this_machine_is_in_it(guide):
    for path in guide.glob("cli-*.html"):
        assert str(Path.home()) + "/" not in path.read_text() and str(ROOT) not in path.read_text(), path.name


def test_the_search_knows_a_flag_and_a_chinese_word(guide):
    index = (guide / "search-index.js").read_text()
    assert "--fence-timeout-ms" in index and "一致性哈希" in index
    assert "without losing keys and without a stampede" in index, "words at the ends of lines are still words"


@pytest.fixture
def copy(tmp_path):
    """The repository with documents of its own, to be broken."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for path in ROOT.iterdir():
        if path.name == "docs":
            shutil.copytree(path, tree / "docs")
        elif path.name != "build" and not path.name.startswith("."):
            (tree / path.name).symlink_to(path)
    return tree


BROKEN = [
    ("see [x](nowhere.md)", "'nowhere.md': there is no docs/nowhere.md"),
    ("see [x](spec.md#no-such-place)", "docs/spec.md has no heading '#no-such-place'"),
    ("see [x](#no-such-place)", "docs/plan.md has no heading '#no-such-place'"),
    ("![x](no-such.svg)", "there is no docs/no-such.svg"),
    ("![x](https://example.org/x.svg)", "'https://example.org/x.svg': a picture from elsewhere"),
    ('<img src="https://example.org/y.svg">', "write links and pictures in Markdown"),
    ("see [x](../../outside.md)", "'../../outside.md': there is no ../outside.md"),
]


def test_what_is_broken_fails_the_build(copy, tmp_path):
    with (copy / "docs/plan.md").open("a") as file:
        file.write("".join(f"\n{text}\n" for text, _ in BROKEN))
    done = build(tmp_path / "out", "--source", str(copy))
    assert done.returncode == 1
    told = done.stderr.splitlines()
    for _, message in BROKEN:
        assert any("docs/plan.md: " in line and message in line for line in told), f"{message}\n{done.stderr}"
    assert len(told) == len(BROKEN), done.stderr
    assert not (tmp_path / "out").exists()


def test_a_new_page_comes_by_itself_and_another_directory_is_left_alone(copy, tmp_path):
    (copy / "docs/novelty.md").write_text("# A novelty\n\nSee [the spec](spec.md), [examples](../examples/embed).\n")
    out = tmp_path / "out"
    done = build(out, "--source", str(copy))
    assert done.returncode == 0, done.stderr
    assert "novelty.html" in (out / "index.html").read_text()
    assert "main.cpp" in (out / "files/examples/embed/index.html").read_text()
    assert (out / "files/examples/embed/main.cpp.txt").is_file()
    assert build(out, "--source", str(copy)).returncode == 0, "an earlier guide is replaced"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    done = build(tmp_path / "mine", "--source", str(copy))
    assert done.returncode == 1 and "name another directory" in done.stderr
    assert (tmp_path / "mine/file").read_text() == "mine"
