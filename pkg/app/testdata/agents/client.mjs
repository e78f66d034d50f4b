// Calls tools by the TypeScript SDK. Arguments: address, token. On standard input a JSON object of arguments by tool. It prints the
// revision and the number of tools, then a line for each call.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const require = createRequire(join(process.env.MCP_CLIENTS, 'package.json'))
const load = (path) => import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/' + path)).href)
const { Client } = await load('client/index.js')
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js')

const [, , url, token] = process.argv
const calls = JSON.parse(readFileSync(0, 'utf8'))
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { 'X-Auth-Token': token } } })
let revision
const client = new Client({ name: 'test', version: '1' })
transport.setProtocolVersion = (version) => { revision = version }
await client.connect(transport)
const { tools } = await client.listTools()
console.log(revision, tools.length)
for (const { name } of tools) {
  try {
    const answer = await client.callTool({ name, arguments: calls[name] })
    console.log(name, 'data' in JSON.parse(answer.content[0].text) ? 'ok' : 'no data')
  } catch (error) {
    console.log(name, error.code)
  }
}
await client.close()
