"""What OpenAPI has no words for: rules among parameters, and rules about other records, files and scripts.

The cases are left as they are made, but for keys that have to be new. Only a failure whose answer names one of these rules is let pass, by code and
rule, and only where the request does break it; anything else fails the run. Nothing here is about one project."""

import itertools
import json
import os

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import JsonSchemaError, RejectedPositiveData

# Parameters of a list that do not go together (docs/api.md).
LIST = {"sort", "select", "projection", "lookup", "offset", "after", "count", "highlight", "explain", "lang"}
APART = [
    ({"facet"}, LIST | {"limit"}),  # it is another answer, that of _facet
    ({"aggregate"}, LIST | {"facet", "q", "qName", "qLimit"}),  # a pipeline does that by its stages
    ({"select"}, {"projection"}),  # two choices of what comes
    ({"after"}, {"offset"}),  # two places to begin
]
# Parameters that are nothing without another one.
NEEDS = [({"qName", "qLimit", "highlight", "explain"}, "q")]

# Rules of validators that JSON Schema can't say: about what else is stored, a file's content, other fields, the moment, by a script.
RULES = {"exists", "unique", "file", "lang", "after", "before", "eq", "ne", "gt", "gte", "lt", "lte", "script", "name", "depth"}  # the last two: of members of open objects

# Parameters whose values are in a language of their own, or made by the server, by the codes of the refusals of such values.
VALUES = {
    "filter": {"bad_filter", "unknown_field", "bad_json", "query_limit", "too_deep", "bad_extended_json", "bad_pattern", "not_comparable"},
    "aggregate": {"bad_pipeline", "bad_filter", "unknown_field", "bad_json", "query_limit", "too_deep", "bad_extended_json"},
    "sort": {"bad_sort"},  # a field twice, two lists
    "after": {"bad_cursor"},
    "q": {"bad_search"},  # no word in it
    "facet": {"query_limit"},
    "fields": {"query_limit"},
    "maxAffected": {"max_affected"},
}
HEADERS = {"Last-Event-ID": "bad_event_id", "Idempotency-Key": "idempotency_key_reused"}

# Filters that are some: what is made for the parameter is none, most often, and would keep everything else from its turn.
FILTERS = [{}, {"id": {"$exists": True}}, {"createdAt": {"$gte": "2020-01-01T00:00:00Z"}}, {"$or": [{"_rev": 1}, {"_rev": {"$gt": 1}}]}]

keys = itertools.count()
run = os.urandom(6).hex()


@schemathesis.hook
def map_case(context, case):
    if not case.meta.generation.mode.is_positive:
        return case
    # A key is of one request: that of another one is refused, as it has to be (422).
    if case.headers and case.headers.get("Idempotency-Key"):
        case.headers["Idempotency-Key"] = f"{run}-{next(keys)}"
    # What is deleted on trial is still there, which checks of what was deleted don't know.
    if case.method == "DELETE" and case.query:
        case.query.pop("dryRun", None)
    if case.query and "filter" in case.query and context.operation.path.count("{") == 0 and next(keys) % 4:
        case.query["filter"] = json.dumps(FILTERS[next(keys) % len(FILTERS)])
    return case


@schemathesis.hook
def filter_failure(context, failure, case, response):
    try:
        answer = json.loads(response.content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    query = case.query or {}
    if isinstance(failure, RejectedPositiveData):
        return not ruled(case, query, answer)
    if isinstance(failure, AcceptedNegativeData):
        # Of many records, each is refused by itself; a change of none has nothing that it could be held against; and what is empty is as if it were not given.
        empty = any(query.get(name) in ("", [], [""]) for name in ("select", "sort", "lookup", "projection", "qName", "lang"))
        return not (answer.get("failed", 0) > 0 or answer.get("matched") == 0 or empty)
    if isinstance(failure, JsonSchemaError):
        # Another parameter, another answer: an anyOf would take the types of all lists from clients that are generated.
        return not ("facet" in query and answer.keys() == {"facets", "window", "truncated"} or "aggregate" in query and {"items", "hasMore"} <= answer.keys())
    return True


def ruled(case, query, answer):
    """Says whether a request that has the form it should have is refused for a rule that it breaks."""
    code, given = answer.get("code"), query.keys()
    if any(code in codes and name in given for name, codes in VALUES.items()) or any(code == c and name in (case.headers or {}) for name, c in HEADERS.items()):
        return True
    if code in ("bad_parameter", "bad_select"):
        return any(a & given and b & given for a, b in APART) or any(a & given and b not in given for a, b in NEEDS)
    if case.media_type == "application/json-patch+json":  # of what the record is not like
        return code in ("bad_patch", "validation_failed")
    if code == "validation_failed":
        return all(broken(case, query, e["path"], e["rule"]) for e in answer["errors"])
    return False


def broken(case, query, path, rule):
    return (
        rule in RULES
        or rule == "required" and "lang" in query  # the fields are those of the language, and the record's own are missing
        or rule == "required" and (case.media_type == "multipart/form-data" or path.endswith((".src", ".path")))  # a part of the form may bring the file
        or rule == "required" and case.method == "PUT" and ("replace" in query or "{" not in case.path)  # the body is the whole record; a singleton may not be there yet
        or rule == "readonly" and path == "_rev" and case.method == "PUT"  # of a singleton that is not there
    )
