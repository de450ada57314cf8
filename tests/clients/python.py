"""The official Python client against `tokkuri serve --tools demo`, in both eras, over HTTP and stdio.

    python python.py URL TOKKURI ROOT
"""

import asyncio
import sys
import time
import traceback

from mcp import Client, StdioServerParameters, types

URL, TOKKURI, ROOT = sys.argv[1:]
ARGS = ["serve", "--stdio", "--store", "memory", "--tools", "demo", "--root", ROOT]
EARLIER, MODERN = "legacy", "2026-07-28"
LIMIT_S = 20


def server(kind):
    return URL if kind == "HTTP" else StdioServerParameters(command=TOKKURI, args=ARGS)


async def calls_a_tool(kind, mode):
    async with Client(server(kind), mode=mode) as client:
        expected = "2025-11-25" if mode == EARLIER else MODERN
        assert client.protocol_version == expected, client.protocol_version
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"ask_name", "export_files", "hash_files"} <= set(names), names
        result = await client.call_tool("hash_files", {"path": "."})
        assert not result.is_error and result.structured_content["count"] == 1, result


async def answers_a_question(kind, mode):
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada", "age": 36})

    async with Client(server(kind), mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("ask_name", {})
        assert result.content[0].text == "Hello Ada, 36 years old!", result
        assert len(asked) == 1, asked


def main():
    failed = 0
    claims = [
        (f"{'earlier' if mode == EARLIER else 'modern'}, {kind}: {claim.__name__.replace('_', ' ')}", claim, kind, mode)
        for mode in (EARLIER, MODERN)
        for kind in ("HTTP", "stdio")
        for claim in (calls_a_tool, answers_a_question)
    ]
    for name, claim, kind, mode in claims:
        started = time.monotonic()
        try:
            asyncio.run(asyncio.wait_for(claim(kind, mode), LIMIT_S))
            print(f"ok   Python {name} ({(time.monotonic() - started) * 1000:.0f} ms)")
        except BaseException:  # whatever it is: groups and time-outs too
            failed += 1
            print(f"FAIL Python {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"test result: {'FAILED' if failed else 'ok'}. {len(claims) - failed} passed; {failed} failed")
    sys.exit(1 if failed else 0)


main()
