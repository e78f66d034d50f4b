# Calls tools by the Python SDK. Arguments: address, token. On standard input a JSON object of arguments by tool. It prints the
# revision and the number of tools, then a line for each call.
import asyncio
import json
import sys

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main(url, token):
    calls = json.load(sys.stdin)
    async with httpx2.AsyncClient(headers={"X-Auth-Token": token}) as http:
        async with streamable_http_client(url, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                started = await session.initialize()
                tools = (await session.list_tools()).tools
                print(started.protocol_version, len(tools))
                for tool in tools:
                    try:
                        answer = await session.call_tool(tool.name, calls[tool.name])
                        print(tool.name, "ok" if "data" in json.loads(answer.content[0].text) else "no data")
                    except Exception as error:
                        print(tool.name, error.error.code)


asyncio.run(main(*sys.argv[1:]))
