"""The HTML report of `turnout compare`, opened in a headless Chromium: what is drawn is counted against the
JSON of the same run, curves are looked for in a picture, and names of a hostile model stay text."""
import collections
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import onnx
    from onnx import TensorProto, helper
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from program import PROGRAM, every_op

MODELS = pathlib.Path(os.environ.get("TURNOUT_MODELS", "build/models"))
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
EVIL = "</script><img src=x onerror=\"document.documentElement.dataset.owned=1\"><!--<script>'&\u2028"
ALONE = """<style>main>*:not(section:nth-of-type(1)),h2,.legend,.label,.leader,.crossover,.mark-text,.winner
{display:none!important}</style></head>"""
OPEN_NODES = "<script nonce=turnout>document.querySelector('details').open = true</script></body>"

failures = []


def check(condition, what):
    if not condition:
        print("FAILED:", what)
        failures.append(what)


class Page(html.parser.HTMLParser):
    """The elements of a page, each with tag, attributes, text directly inside, and the elements around it."""

    VOID = {"meta", "input", "br", "img", "link"}

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "attributes": {k: v or "" for k, v in attributes}, "text": "", "around": list(self.open)}
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        while self.open and self.open.pop()["tag"] != tag:
            pass

    def handle_data(self, text):
        if self.open:
            self.open[-1]["text"] += text

    def find(self, tag, css="", inside=None):
        return [e for e in self.elements if e["tag"] == tag
                and set(css.split()) <= set(e["attributes"].get("class", "").split())
                and (inside is None or any(e is inside or o is inside for o in e["around"]))]


def compare(folder, model, *options):
    """Runs compare; the report's path and text, and the JSON of the same run."""
    report, figures = folder / "new" / "report.html", folder / "report.json"
    command = [PROGRAM, "compare", str(model), "--budget", "0.02", "--html", str(report), "--json", str(figures), *every_op(), *options]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit {run.returncode}\n{run.stdout}{run.stderr}")
    return report, report.read_text(encoding="utf-8"), json.loads(figures.read_text())


def chromium(folder, page, *options):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
               f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", *options, page.as_uri()]
    run = subprocess.run(command, capture_output=True, timeout=300)
    messages = [line for line in run.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
    check(run.returncode == 0, f"chromium ended with {run.returncode}")
    check(not messages, f"the page's console is not empty: {messages}")
    return run.stdout.decode("utf-8")


def check_self_contained(text):
    # "<" of names is escaped, so what looks like markup is.
    check(not re.search(r"https?://", text.replace("http://www.w3.org/2000/svg", "")), "the report names an address")
    check(not re.search(r"<link|<[^>]*\s(src|href)=|@import|url\(", text), "the report refers to another file")


def check_drawn(page, figures):
    """The curves, marks, bars and rows are those of the JSON."""
    rows = collections.defaultdict(list)
    for row in figures["rows"]:
        rows[row["device"]] += [] if "skipped" in row else [row]
    series = {e["attributes"]["data-device"]: e for e in page.find("g", "series")}
    check(set(series) == {d for d in rows if rows[d]}, f"curves of {sorted(series)}")
    for device, element in series.items():
        points = page.find("circle", "point", element)
        for evidence, drawn in (("measured", "measured"), ("mixed", "mixed"), ("predicted", "predicted")):
            wanted = sum(row["evidence"] == evidence for row in rows[device])
            found = sum(drawn in p["attributes"]["class"].split() for p in points)
            check(found == wanted, f"{device}: {found} {evidence} points for {wanted} rows")
        check(len(points) == len(rows[device]), f"{device}: {len(points)} points for {len(rows[device])} rows")
        paths = page.find("path", "curve", element)
        check(bool(paths) == (len(points) > 1), f"{device}: {len(paths)} paths through {len(points)} points")
        heights = [float(p["attributes"]["cy"]) for p in points]
        order = sorted(range(len(points)), key=lambda i: rows[device][i]["latency_s"])
        check(all(heights[a] >= heights[b] for a, b in zip(order, order[1:])), f"{device}: a slower point is not higher")
    marks = page.find("g", "crossover")
    check(sorted(int(m["attributes"]["data-batch"]) for m in marks) == sorted(x["batch"] for x in figures["crossovers"]),
          f"{len(marks)} crossover marks for {figures['crossovers']}")
    check(len(page.find("text", "mark-text")) == len(marks), "a crossover has no text")
    batches = {row["batch"] for row in figures["rows"]}
    check(len(page.find("g", "column")) == len(batches), "not every batch can be pointed at")
    check(sum(e["attributes"].get("name") == "batch" for e in page.find("input")) == len(batches), "batches to choose from")
    ops = {node["op"] for row in figures["rows"] for node in row.get("node_times", [])}
    names = [e["text"] for op in page.find("div", "op") for e in page.find("div", inside=op)[1:2]]
    check({"whole run"} < set(names) <= ops | {"whole run", "transfers between devices"}, f"bars of the ops {names}")
    check(all("width" in e["attributes"]["style"] for e in page.find("span", "part")), "a bar has no width")
    table = next(e for e in page.find("table") if e["attributes"].get("id") == "rows")
    shown = sum(e["tag"] == "tr" and any(o["tag"] == "tbody" for o in e["around"]) for e in page.find("tr", inside=table))
    check(shown == len(figures["rows"]), f"{shown} table rows for {len(figures['rows'])}")
    skipped = [e["text"] for e in page.find("td", "skipped", table)]
    check(skipped == ["skipped: " + r["skipped"] for r in figures["rows"] if "skipped" in r], f"skipped cells {skipped}")
    for element in page.elements:
        for name, value in element["attributes"].items():
            numeric = name not in ("data-device", "title", "aria-label", "content")
            check(not (numeric and re.search(r"nan|inf|undefined", value, re.I)), f"{element['tag']} {name}={value}")


def check_picture(folder, text, page, dark):
    """Only the curves are left on the page; each one's colour is in the picture, an unused colour is not."""
    alone = folder / "alone.html"
    alone.write_text(text.replace("</head>", ALONE, 1), encoding="utf-8")
    picture = folder / f"picture{dark}.png"
    theme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    chromium(folder, alone, *theme, "--force-device-scale-factor=2", "--window-size=1200,700", f"--screenshot={picture}")
    palette = re.findall(r"--(c\d):#(\w{6})", text[text.index("prefers-color-scheme:dark") if dark else 0:])
    palette = {name: bytes.fromhex(colour) for name, colour in reversed(palette[:7])}
    with Image.open(picture) as image:
        colours = image.convert("RGB").getcolors(1 << 24)

    def pixels(colour):
        return sum(n for n, rgb in colours if max(abs(a - b) for a, b in zip(rgb, colour)) <= 8)

    drawn = {e["attributes"]["data-device"] for e in page.find("g", "series")}
    devices = {e["attributes"]["data-css"]: e["attributes"]["data-device"] for e in page.find("li")
               if e["attributes"].get("data-device") in drawn}
    for css, colour in palette.items():
        count = pixels(colour)
        if css in devices:
            check(count >= 100, f"{devices[css]}: {count} pixels of its colour (dark: {dark})")
        elif css not in devices:
            check(count < 20, f"{count} pixels of the unused {css} (dark: {dark})")
    print(f"picture, dark {dark}:", {devices[c]: pixels(palette[c]) for c in devices if c in palette})


def available(wanted):
    listed = subprocess.run([PROGRAM, "devices"], capture_output=True, text=True).stdout
    return [d for d in wanted if d in ("cpu", "auto") or d in listed]


def test_digits(folder):
    model, rows = MODELS / "digits-mlp.onnx", MODELS / "inputs" / "digits-mlp.npy"
    if not model.exists():
        print(f"skipped: no {model}")
        sys.exit(77)
    devices = available(["cpu", "virtual:v100", "virtual:mi210", "auto"])
    print("devices:", devices)
    for chosen, batches in ((devices, "1,4,16,64"), (["cpu"], "8"), (devices, "2")):
        report, text, figures = compare(folder, model, "--input", f"pixels={rows}", "--batch", batches,
                                        "--devices", ",".join(chosen))
        check_self_contained(text)
        page = Page(chromium(folder, report, "--dump-dom"))
        check_drawn(page, figures)
        if len(chosen) > 1 and "," in batches:
            for dark in (False, True):
                check_picture(folder, text, page, dark)


def test_hostile_names(folder):
    """Scripts in the names of a model's nodes, values and graph are shown and do not run."""
    relu = helper.make_node("Relu", ["x"], [EVIL + "value"], name=EVIL)
    softmax = helper.make_node("Softmax", [EVIL + "value"], ["y"], name=EVIL + "2")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in ("x", "y")]
    graph = helper.make_graph([relu, softmax], EVIL, tensors[:1], tensors[1:])
    model = folder / "hostile.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), model)
    report, text, figures = compare(folder, model, "--batch", "1,2", "--devices", "cpu")
    names = [node["name"] for node in figures["rows"][0]["node_times"]]
    check(any(EVIL in name for name in names), f"the model's names are not in the comparison: {names}")
    report.write_text(text.replace("</body>", OPEN_NODES), encoding="utf-8")
    dom = chromium(folder, report, "--dump-dom")
    page = Page(dom)
    check(not page.find("img"), "a name became an element")
    check(len(page.find("script")) == 3, f"{len(page.find('script'))} scripts")
    check(all("data-owned" not in e["attributes"] for e in page.find("html")), "a name was executed")
    check([e["text"] for e in page.find("h1")] == [figures["model"]], "the model's name is not shown as it is")
    shown = {e["text"] for e in page.find("td", inside=page.find("table", "by-node")[0])}
    check(set(names) <= shown, f"nodes {names} are listed as {shown}")
    check_drawn(page, figures)


def main():
    if CHROMIUM is None:
        print("skipped: no chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for test in (test_digits, test_hostile_names):
            test(pathlib.Path(folder))
    if failures:
        sys.exit(f"{len(failures)} checks failed")
    print("all checks passed")


main()
