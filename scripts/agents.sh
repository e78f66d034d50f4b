#!/bin/sh
# make agents: has the official MCP clients for Python and TypeScript and the Inspector call every tool, and a client that a public generator makes of the
# sample's OpenAPI document work with it, and schemathesis hold the service against that document. They are installed, with the compiler of TypeScript, into MCP_CLIENTS
# (bin/agents), from where the tests take them; with the argument install, they are only that.
set -eu
cd "$(dirname "$0")/.."
dir=${MCP_CLIENTS:-$PWD/bin/agents}
mkdir -p "$dir"
[ -x "$dir/venv/bin/python" ] || python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 schemathesis==4.32.5
npm install --prefix "$dir" --no-audit --no-fund --silent @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/inspector@2.12.0 \
	typescript@5.9.3 openapi-typescript@7.13.0 openapi-fetch@0.17.0
[ "${1:-}" = install ] || MCP_CLIENTS="$dir" "${GO:-go}" test ./pkg/app -run '^Test(OtherSDKs|OpenAPIClient|OpenAPIHolds)$' -count=1 -v
