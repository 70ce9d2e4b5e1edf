"""bench/html/machine.py - draws the packages, NUMA nodes, cores and PUs of the machine."""
import json
import re

from checks import Problem, read_text
from texts import escape, size_text


def nodes_of_machine(path):
    """Reads the output of `ditto-info --json`. Returns the packages and the NUMA nodes.

    The packages are a dictionary from packages to nodes to cores to lists of (PU, last-level cache, kind).
    The NUMA nodes are a dictionary from nodes to (bytes of memory, kind)."""
    try:
        machine = json.loads(read_text(path, "the output of `ditto-info --json`"))
        if machine["schema"] != 2:
            raise Problem(f"{path}: asked for schema 2 of `ditto-info --json`, but found "
                          f"{machine['schema']}; use the html_report.py of that version")
        packages = {}
        for pu in machine["machine"]["pus"]:
            cores = packages.setdefault(pu["package"], {}).setdefault(pu["numa_node"], {})
            cores.setdefault(pu["core"], []).append((int(pu["pu"]), int(pu["llc"]), int(pu["kind"])))
        nodes = {node["numa_node"]: (int(node["memory_bytes"]), str(node["kind"]))
                 for node in machine["machine"]["nodes"]}
    except json.JSONDecodeError as error:
        raise Problem(f"{path}: asked for the output of `ditto-info --json`, but line {error.lineno} is not "
                      "JSON; write the file again with `build/tools/ditto-info --json`") from error
    except (KeyError, TypeError, ValueError) as error:
        raise Problem(f"{path}: asked for the output of `ditto-info --json`, but {error} is missing or "
                      "wrong; write the file again with `build/tools/ditto-info --json`") from error
    if not packages:
        raise Problem(f"{path}: asked for PUs, but found none; write the file again with "
                      "`build/tools/ditto-info --json`")
    return packages, nodes


def box(kind, x, y, width, height, tip=""):
    """Returns a rectangle. `kind` is its class in style.css."""
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3">{title}</rect>'


def draw_cores(cores, x, y, most):
    """Draws the cores of a node in lines, with a box for each PU. Returns the parts, width and height."""
    parts, left, line, right = [], x, y, x
    for core, pus in cores.items():
        width = 8 + 28 * len(pus)
        if left > x and left + width > x + most:
            left, line = x, line + 50
        parts.append(box("core", left, line, width, 44,
                         f"core {core}, last-level cache {pus[0][1]}, kind {pus[0][2]}"))
        parts.append(f'<text x="{left + 4}" y="{line + 13}">{core}</text>')
        for number, (pu, _, _) in enumerate(pus):
            at = left + 4 + 28 * number
            parts.append(box("pu", at + 1, line + 18, 26, 21, f"PU {pu} of core {core}"))
            parts.append(f'<text x="{at + 14}" y="{line + 33}" text-anchor="middle">{pu}</text>')
        left += width + 6
        right = max(right, left - 6)
    return parts, right - x, line + 44 - y


def draw_package(package, of_node, nodes):
    """Draws a package, with a box for each of its NUMA nodes. `of_node` has the cores of each node."""
    parts, y, width = [], 26, 120
    for node, cores in of_node.items():
        inside, inside_width, inside_height = draw_cores(cores, 18, y + 24, 316)
        memory = nodes.get(node, (0, ""))[0]
        text = "no NUMA node" if node is None else f"NUMA node {node}"
        text += f", {size_text(memory)}" if memory else ""
        width = max(width, inside_width + 20, 30 + 7 * len(text))
        parts.append((y, inside_height + 34, text, inside))
        y += inside_height + 42
    drawn = [box("package", 1, 1, width + 18, y, f"package {package}"),
             f'<text x="9" y="18">package {package}</text>']
    for top, height, text, inside in parts:
        drawn.append(box("node", 10, top, width, height, text))
        drawn.append(f'<text x="18" y="{top + 16}">{escape(text)}</text>')
        drawn += inside
    return f'<svg width="{width + 20}" height="{y + 2}" viewBox="0 0 {width + 20} {y + 2}" role="img" ' \
           f'aria-label="package {package}">{"".join(drawn)}</svg>'


def machine_of_json(path, report):
    """Returns the drawing of the machine that a file of `ditto-info --json` describes, and a text."""
    packages, nodes = nodes_of_machine(path)
    pus = sum(len(pus) for of_node in packages.values() for cores in of_node.values()
              for pus in cores.values())
    drawing = "".join(draw_package(package, of_node, nodes) for package, of_node in packages.items())
    said = re.search(r"(\d+) PUs", " ".join(report.comments[1:2]))
    text = "Drawn from the output of <code>ditto-info --json</code>: the PUs that its process could use. " \
           "In a box of a core, the upper number is that of the core, and the lower ones are those of its " \
           "PUs."
    if said and int(said[1]) != pus:
        text += f" It has {pus} PUs, but the CSV says {said[1]}, so it may be another machine."
    bare = [str(node) for node, (_, kind) in nodes.items() if kind == "CPU-less"]
    if bare:
        text += f" NUMA nodes without PUs: {', '.join(bare)}."
    return drawing, text


def machine_of_header(report):
    """Returns a drawing of the PUs and NUMA nodes that a comment line of the CSV counts, and a text."""
    line = " ".join(report.comments[1:2])
    pus, nodes = re.search(r"(\d+) PUs", line), re.search(r"NUMA nodes: (\d+)", line)
    if not pus or not nodes:
        return "", "Not drawn, because no comment line of the CSV says how many PUs and NUMA nodes the " \
                   "machine has. <code>build/bench/ditto-bench machine</code> prints such lines."
    pus, nodes = min(int(pus[1]), 4096), min(int(nodes[1]), 64)
    width, per_line = 340, 11
    y = 30
    parts = []
    for node in range(nodes):
        x = 10 + node % 3 * 108
        parts.append(box("node", x, y, 100, 26, f"NUMA node {node}"))
        parts.append(f'<text x="{x + 50}" y="{y + 17}" text-anchor="middle">NUMA node {node}</text>')
        y += 34 if node % 3 == 2 and node + 1 < nodes else 0
    y += 36
    for pu in range(pus):
        x, top = 10 + pu % per_line * 29, y + pu // per_line * 26
        parts.append(box("pu", x, top, 26, 21, f"PU {pu}"))
        parts.append(f'<text x="{x + 13}" y="{top + 15}" text-anchor="middle">{pu}</text>')
    height = y + (pus + per_line - 1) // per_line * 26 + 6
    parts.insert(0, box("package unknown", 1, 1, width - 2, height - 2))
    parts.insert(1, '<text x="9" y="18">packages and cores: not known</text>')
    return (f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{pus} PUs and {nodes} NUMA nodes">{"".join(parts)}</svg>',
            "Drawn from the header lines of the CSV, which have only the numbers of PUs and NUMA nodes. With "
            "<code>--machine FILE.json</code>, the output of <code>ditto-info --json</code>, the drawing "
            "also shows the packages and cores, and which PU is where.")


def machine_section(report, path):
    """Returns the section about the machine. `path` names the output of `ditto-info --json`, or is None."""
    drawing, text = machine_of_json(path, report) if path else machine_of_header(report)
    return f'<section id="machine"><h2>Machine</h2><div class="machine">{drawing}</div>' \
           f'<p class="note">{text}</p></section>'
