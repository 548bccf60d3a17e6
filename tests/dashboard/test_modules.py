"""The modules of the dashboard: none leads back to itself, also by an import that waits in a function."""

import ast
from graphlib import TopologicalSorter

from tests.conftest import ROOT


def test_no_module_of_the_dashboard_imports_itself_by_way_of_others():
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "dashboard").rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= {each if each in files else node.module for each in named}
        graph[name] = found & files.keys() - {name}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
