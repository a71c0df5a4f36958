"""Checks a bill of materials with the JSON schema of CycloneDX 1.6.

usage: check_bill.py BILL
"""

import importlib.resources
import json
import pathlib
import sys

import jsonschema
import referencing

bill = json.loads(pathlib.Path(sys.argv[1]).read_text())
schemas = importlib.resources.files("cyclonedx.schema") / "_res"


def schema(name):
    """A schema of the package, and the name by which others refer to it."""
    return json.loads((schemas / name).read_text())


main = schema("bom-1.6.SNAPSHOT.schema.json")
names = ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"]
base = main["$id"].rsplit("/", 1)[0]
registry = referencing.Registry().with_resources(
    (f"{base}/{name}", referencing.Resource.from_contents(schema(name))) for name in names
)
validator = jsonschema.Draft7Validator(main, registry=registry)


def faults(document):
    """What is wrong with a bill, with the place of each fault."""
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


found = faults(bill)
assert not found, "\n".join(found)

# What is wrong in other bills is found: the schema is not empty, and the ones that it refers to are read.
for key, value, place in [
    ("specVersion", 1.6, "$.specVersion"),
    ("serialNumber", "none", "$.serialNumber"),
    ("components", [{"type": "library"}], "$.components[0]"),
    ("components", [{"type": "shelf", "name": "x"}], "$.components[0].type"),
    (
        "components",
        [{"type": "library", "name": "x", "licenses": [{"license": {"id": "No-Such-Licence"}}]}],
        "$.components[0].licenses",
    ),
    ("surprise", 1, "$"),
]:
    found = faults(bill | {key: value})
    assert any(fault.startswith(f"{place}: ") for fault in found), (key, value, found)
