"""What tests of several rooms share."""

import json
from functools import cache
from importlib.resources import files

import fastjsonschema


@cache
def _policy_schema():
    schema = json.loads(files("skselect.policy").joinpath("policy.schema.json").read_text())
    return fastjsonschema.compile(schema)


def check_schema(policy_json):
    """Raise JsonSchemaException if the text is no policy by the published schema."""
    _policy_schema()(json.loads(policy_json))
