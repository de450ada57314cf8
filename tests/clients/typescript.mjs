// The official TypeScript clients against `tokkuri serve --tools demo`:
//
//   node typescript.mjs URL TOKKURI ROOT
//
// * `@modelcontextprotocol/sdk` 1.x, the earlier era, over HTTP and stdio;
// * `@modelcontextprotocol/client` 2.x, the modern era, over HTTP and stdio;
// * `@modelcontextprotocol/ext-tasks`, which drives a whole task with a question over HTTP.
import assert from 'node:assert/strict';

import * as modern from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { claims } from './claims.mjs';

const [url, tokkuri, root] = process.argv.slice(2);
const server = { command: tokkuri, args: ['serve', '--stdio', '--store', 'memory', '--tools', 'demo', '--root', root] };
const me = { name: 'tokkuri-clients', version: '0' };
const capabilities = { elicitation: { form: {} } };
const MODERN = '2026-07-28';

/** The user: fills in every form. */
function answer(params, asked) {
  asked.push(params.message);
  return { action: 'accept', content: { name: 'Ada', age: 36 } };
}

/** A client of the earlier era; what it was asked is in `asked`. */
async function earlier(transport, use) {
  const asked = [];
  const client = new Client(me, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, async (request) => answer(request.params, asked));
  await client.connect(transport);
  try {
    await use(client, asked);
  } finally {
    await client.close();
  }
}

/** The same of the modern era: its questions are answered round by round, which the client does by itself. */
async function newer(transport, use) {
  const asked = [];
  const client = new modern.Client(me, { capabilities, versionNegotiation: { mode: { pin: MODERN } } });
  client.setRequestHandler('elicitation/create', async (request) => answer(request.params, asked));
  await client.connect(transport);
  try {
    await use(client, asked);
  } finally {
    await client.close();
  }
}

async function lists(client) {
  const { tools } = await client.listTools();
  for (const name of ['ask_name', 'export_files', 'hash_files']) {
    assert(tools.some((tool) => tool.name === name), `${name} is listed`);
  }
}

async function hashes(client) {
  const result = await client.callTool({ name: 'hash_files', arguments: { path: '.' } });
  assert.notEqual(result.isError, true, JSON.stringify(result));
  assert.equal(result.structuredContent.count, 1, JSON.stringify(result));
}

async function greets(client, asked) {
  const result = await client.callTool({ name: 'ask_name', arguments: {} });
  assert.equal(result.content[0].text, 'Hello Ada, 36 years old!', JSON.stringify(result));
  assert.equal(asked.length, 1);
}

/** What the client of the extension leaves to its host: one request of the modern era over HTTP. */
function dispatch(trace) {
  let id = 0;
  return async ({ method, params }) => {
    trace.push(method);
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      'mcp-name': params.taskId ?? params.name,
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: (id += 1), method, params });
    const response = await fetch(url, { method: 'POST', headers, body });
    const message = await response.json();
    return 'error' in message ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result };
  };
}

async function drives(use) {
  await newer(new modern.StreamableHTTPClientTransport(new URL(url)), async (client) => {
    const trace = [];
    const session = createTaskSessionFromClient(client, {
      endpointId: 'tokkuri',
      rawDispatch: dispatch(trace),
      v2RequestFraming: { protocolVersion: MODERN, clientInfo: me, clientCapabilities: capabilities },
      onInputRequest: async (request, context) => {
        assert.deepEqual([request.kind, context.scope, context.delivery], ['elicitation', 'task', 'task-update']);
        return { action: 'accept', content: { name: 'Ada' } };
      },
    });
    try {
      await use(session, trace);
    } finally {
      await session.close();
    }
  });
}

const http = () => new StreamableHTTPClientTransport(new URL(url));
const stdio = () => new StdioClientTransport(server);
const modernHttp = () => new modern.StreamableHTTPClientTransport(new URL(url));
const modernStdio = () => new ModernStdio(server);

await claims('TypeScript', [
  ['sdk, HTTP: lists and calls a tool', () => earlier(http(), async (client) => (await lists(client), hashes(client)))],
  ['sdk, HTTP: answers a question', () => earlier(http(), greets)],
  ['sdk, stdio: lists and calls a tool', () => earlier(stdio(), async (client) => (await lists(client), hashes(client)))],
  ['sdk, stdio: answers a question', () => earlier(stdio(), greets)],
  ['client, HTTP: lists and calls a tool', () => newer(modernHttp(), async (client) => (await lists(client), hashes(client)))],
  ['client, HTTP: answers a question', () => newer(modernHttp(), greets)],
  ['client, stdio: lists and calls a tool', () => newer(modernStdio(), async (client) => (await lists(client), hashes(client)))],
  ['client, stdio: answers a question', () => newer(modernStdio(), greets)],
  [
    'ext-tasks, HTTP: drives a task with a question to its result',
    () =>
      drives(async (session, trace) => {
        const execution = await session.callTool('ask_name', {});
        assert.equal(execution.kind, 'task');
        const { outcome, lastTask } = await execution.settle();
        const result = resultFromTaskOutcome(outcome);
        assert.equal(result.content[0].text, 'Hello Ada!');
        assert.equal(lastTask.status, 'completed');
        assert.deepEqual([...new Set(trace)].sort(), ['tasks/get', 'tasks/update', 'tools/call']);
      }),
  ],
  [
    'ext-tasks, HTTP: cancels a task',
    () =>
      drives(async (session, trace) => {
        const execution = await session.callTool('ask_name', {}, { task: { preference: 'require' } });
        await session.task(execution.handle.taskId).cancel();
        const view = await session.task(execution.handle.taskId).snapshot();
        assert.equal(view.status, 'cancelled');
        assert(trace.includes('tasks/cancel'));
      }),
  ],
]);
